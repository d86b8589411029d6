# Packages that run on other systems than the one where they were built: `.ci/build-packages` sets DIC_PACKAGE_FOLDER to what
# cmake/packages/make-sysroot made there. Objects are compiled as always; they are linked with the C library of Debian 11 and with
# static libraries. The newest symbol that a program asks of the C library is checked afterwards (tests/packages).
set(DIC_PACKAGE_FOLDER "" CACHE PATH "Made by cmake/packages/make-sysroot: link for any system with glibc 2.31 or later")
if(NOT DIC_PACKAGE_FOLDER)
  return()
endif()

set(sysroot ${DIC_PACKAGE_FOLDER}/sysroot)
set(static ${DIC_PACKAGE_FOLDER}/static)
list(PREPEND CMAKE_PREFIX_PATH ${static})
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
set(HDF5_ROOT ${static})
set(HDF5_NO_FIND_PACKAGE_CONFIG_FILE ON)
set(ENV{PKG_CONFIG_LIBDIR} ${static}/lib/pkgconfig)

set(triplet ${CMAKE_LIBRARY_ARCHITECTURE})
add_link_options(--sysroot=${sysroot} -B${sysroot}/usr/lib/${triplet} -L${sysroot}/link -L${sysroot}/usr/lib/${triplet}
  -L${sysroot}/lib/${triplet} -L${static}/lib)
# What the old C library does not have is an error here, not where the program starts.
add_link_options(-Wl,-z,defs)
# Which members of which archives went in: cmake/packages/write-sbom reads it.
add_link_options(-Wl,-Map=${PROJECT_BINARY_DIR}/$<TARGET_PROPERTY:NAME>.map)
# A shared libdic and the Python module keep to themselves what is inside them.
add_link_options($<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>>:-Wl,--exclude-libs,ALL>)
# What the static libraries need themselves.
foreach(library hdf5 tiff jpeg deflate png16 z)
  string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " ${static}/lib/lib${library}.a")
endforeach()
string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " -lpthread -ldl -lm")

# OpenCV was built with the shared libraries of the system where that happened.
macro(dic_link_opencv_statically)
  foreach(target IN LISTS OpenCV_LIBS)
    get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
    list(TRANSFORM libraries REPLACE "/usr/lib/.*/lib(jpeg|png|tiff|z)\\.so" "${static}/lib/lib\\1.a")
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${libraries}")
  endforeach()
endmacro()

# Debian's is a shared library; the header alone will do.
add_library(tomlplusplus::tomlplusplus INTERFACE IMPORTED)
