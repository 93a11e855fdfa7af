# Read by the build of llama.cpp (see .cargo/config.toml). The crate llama-cpp-2 asks for llama.cpp's common library in
# every build. hob uses nothing of it, and compiling it would take half of the time.
set(LLAMA_BUILD_COMMON OFF CACHE BOOL "" FORCE)
