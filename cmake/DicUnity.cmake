# With DIC_UNITY_ROOMS several files of a room are compiled as one. Not those below: they use names for themselves that other files of
# their room use, too. GCC takes longer for the files of the room stereo together than for each by itself.
set(DIC_ROOMS_APART stereo)
set(DIC_ALONE_analysis power_spectrum.cpp self_similarity.cpp sensor_noise.cpp subset_choice.cpp)
set(DIC_ALONE_calibrate residual_picture.cpp)
set(DIC_ALONE_fields strain.cpp)
set(DIC_ALONE_io text_table.cpp)
set(DIC_ALONE_live webcam.cpp)
set(DIC_ALONE_match faint_pattern.cpp image_pyramid.cpp pose_sigmas.cpp pose_template.cpp template_tracker.cpp)
set(DIC_ALONE_run parts.cpp stereo_files.cpp stereo_parts.cpp strain_summary.cpp)
set(DIC_ALONE_track coarse_search.cpp field_steps.cpp focus_match.cpp)
set(DIC_ALONE_validate json.cpp stereo.cpp suites.cpp tables.cpp)

# dic_join_sources(ROOM ALONE...): ALONE are further files that are compiled by themselves, as vectorized ones, which include themselves.
function(dic_join_sources room)
  if(room IN_LIST DIC_ROOMS_APART)
    return()
  endif()
  get_target_property(sources dic_${room} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(path ${source} ABSOLUTE)
    set(vectorized "")
    if(EXISTS ${path})  # else it is generated
      file(STRINGS ${path} vectorized REGEX "^#define HWY_TARGET_INCLUDE" LIMIT_COUNT 1)
    endif()
    if(vectorized OR source IN_LIST ARGN OR source IN_LIST DIC_ALONE_${room})
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  set_target_properties(dic_${room} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  # GCC warns of unnamed namespaces of included files, which may be headers.
  target_compile_options(dic_${room} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()
