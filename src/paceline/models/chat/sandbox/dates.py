"""`strftime_now` of chat templates: today's date, in the forms that they use."""

import re
from datetime import datetime
from typing import Any

from paceline.models.chat.sandbox.budget import Budget, TemplateLimitError

_FORM = re.compile(r"(?:[^%]|%-?[aAbBdHIjmMpSyYZzTFDeUW%])*")  # no widths: the C library would fill them
_MAX_LENGTH = 200


def format_date(budget: Budget, date: datetime, form: Any) -> str:
    if not isinstance(form, str) or len(form) > _MAX_LENGTH or not _FORM.fullmatch(form):
        raise TemplateLimitError("'strftime_now' is asked for a form of date that chat templates may not use")
    budget.make(20 * _MAX_LENGTH)
    return date.strftime(str(form))
