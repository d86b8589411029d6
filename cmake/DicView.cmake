# What `dic view` and `dic report` need beside the library: the page (app/view/page/), Chart.js and cpp-httplib. Sets DIC_VIEW_SOURCES
# and DIC_VIEW_LIBRARIES of the program, and DIC_WEB_FILES of the report.
find_package(PkgConfig QUIET)

# The library was compiled with settings that its header has to see, too: pkg-config knows them.
if(PkgConfig_FOUND)
  pkg_check_modules(HTTPLIB QUIET IMPORTED_TARGET GLOBAL cpp-httplib)
endif()
if(HTTPLIB_FOUND)
  set(DIC_VIEW_SOURCES view/clients.cpp view/server.cpp)
  set(DIC_VIEW_LIBRARIES PkgConfig::HTTPLIB)
else()
  message(STATUS "cpp-httplib was not found: dic view will say so (Debian: libcpp-httplib-dev, pkg-config)")
  set(DIC_VIEW_SOURCES view/server_missing.cpp)
endif()

find_file(DIC_CHART_JS NAMES chart.umd.min.js chart.umd.js chart.min.js
  PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist
  DOC "Chart.js, in one file without modules")
set(chart_file ${DIC_CHART_JS})
if(NOT DIC_CHART_JS)
  message(STATUS "Chart.js was not found: dic view and reports will say so in the place of curves (Debian: libjs-chart.js)")
  set(chart_file ${PROJECT_SOURCE_DIR}/app/view/chart_missing.js)
endif()

file(GLOB web_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/app/view/page/*.html ${PROJECT_SOURCE_DIR}/app/view/page/*.css
  ${PROJECT_SOURCE_DIR}/app/view/page/*.js)
set(named_files "chart.js=${chart_file}")
foreach(file IN LISTS web_files)
  cmake_path(GET file FILENAME name)
  list(APPEND named_files "${name}=${file}")
endforeach()
set(DIC_WEB_FILES ${CMAKE_CURRENT_BINARY_DIR}/web_files_embedded.cpp)
dic_embed_files(${DIC_WEB_FILES} HEADER view/web_files.hpp NAMESPACE dic::app TYPE WebFile FUNCTION embedded_files FILES ${named_files})
