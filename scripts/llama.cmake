# Read by the build of llama.cpp (see .cargo/config.toml), once in each of its projects. The crate llama-cpp-2 asks for llama.cpp's
# common library in every build. hob uses nothing of it, and compiling it would take half of the time.
set(LLAMA_BUILD_COMMON OFF CACHE BOOL "" FORCE)
# In tests only ggml must be fast: it does all the arithmetic. cargo names its profile to build scripts.
if("$ENV{PROFILE}" STREQUAL "debug" AND PROJECT_NAME STREQUAL "llama.cpp")
  set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")
elseif("$ENV{PROFILE}" STREQUAL "debug" AND PROJECT_NAME STREQUAL "ggml")
  set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
endif()
# llama-cpp-sys-2 builds for the oldest 64-bit ARM processor. The Makefile sets a variable for each unit that this one has in addition.
if(GGML_CPU_ARM_ARCH AND PROJECT_NAME STREQUAL "ggml")
  set(hob_arm_units "")
  foreach(unit DOTPROD FP16 I8MM)
    if(GGML_ARM_${unit})
      string(TOLOWER "+${unit}" unit)
      string(APPEND hob_arm_units "${unit}")
    endif()
  endforeach()
  if(hob_arm_units)
    set(GGML_CPU_ARM_ARCH "armv8.2-a${hob_arm_units}" CACHE STRING "" FORCE)
  endif()
endif()
# ggml's Vulkan backend needs newer headers than those of Debian 12.
if(GGML_VULKAN AND PROJECT_NAME STREQUAL "ggml")
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-include${CMAKE_CURRENT_LIST_DIR}/vulkan_before_272.hpp>")
endif()
# Its kernels for AMX.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND PROJECT_NAME STREQUAL "ggml")
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-include${CMAKE_CURRENT_LIST_DIR}/amx_tiles.hpp>")
endif()
# The libraries of a portable build are in one folder, together with GNU's OpenMP.
if(GGML_BACKEND_DL)
  set(CMAKE_INSTALL_RPATH "$ORIGIN")
endif()
