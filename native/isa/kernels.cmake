# The translation units of the kernels, each with the instructions that it alone may hold.
#
# Their code lives in namespaces of their own and includes no header with inline functions that another unit could be
# given by the linker. A unit whose flags the compiler does not know, or that is for another processor, is empty.
include(CheckCXXCompilerFlag)

set(paceline_isa_dir ${CMAKE_CURRENT_LIST_DIR})

# Compiles the units of one path with `flags`, where the compiler knows them all.
function(paceline_compile_path target path flags)
  set(units ${paceline_isa_dir}/${path}.cpp ${paceline_isa_dir}/${path}_records.cpp)
  target_sources(${target} PRIVATE ${units})
  string(REPLACE ";" " " CMAKE_REQUIRED_FLAGS "${flags}")
  check_cxx_compiler_flag("" can_compile_${path})
  if(can_compile_${path})
    set_source_files_properties(${units} PROPERTIES COMPILE_OPTIONS "${flags};${kernel_optimization}")
  endif()
endfunction()

function(paceline_add_kernels target)
  target_sources(${target} PRIVATE ${paceline_isa_dir}/portable.cpp)
  # Its loops of 8 need the vectoriser, but everything else of -O3 makes its compilation four times as long.
  set(portable_optimization ${kernel_optimization})
  if(kernel_optimization STREQUAL "-O3" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(portable_optimization -O2 -ftree-vectorize -fvect-cost-model=dynamic)
  endif()
  set_source_files_properties(${paceline_isa_dir}/portable.cpp PROPERTIES COMPILE_OPTIONS "${portable_optimization}")
  set(avx2 -mavx2 -mfma -mf16c)
  paceline_compile_path(${target} avx2 "${avx2}")
  paceline_compile_path(${target} avx512 "${avx2};-mavx512f;-mavx512bw;-mavx512vl;-mavx512vnni")
  paceline_compile_path(${target} neon "-march=armv8.2-a+dotprod")
endfunction()
