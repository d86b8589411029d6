# Compiles on x86-64 for Linux on 64-bit Arm with Debian's cross compiler. What has to run meanwhile is run by QEMU.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CXX_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)
set(CMAKE_LIBRARY_PATH /usr/aarch64-linux-gnu/lib)
# This machine's libraries are of another processor.
set(CMAKE_DISABLE_FIND_PACKAGE_MPI ON)
# Headers alone, but Debian keeps their file for CMake among the libraries of a processor.
set(tomlplusplus_DIR /usr/lib/x86_64-linux-gnu/cmake/tomlplusplus)
