#include <dic/info.hpp>
#include <iostream>

#include "commands.hpp"

namespace dic::app {

namespace {

void print_devices(const std::string& note, const std::vector<DeviceInfo>& devices) {
  std::cout << (note.empty() ? "ready" : note) << '\n';
  for (const DeviceInfo& device : devices)
    std::cout << "  " << device.name << "    " << device.model << ", " << device.details << '\n';
}

void print_info() {
  const BuildInfo info = build_info();
  const OpenClInfo opencl = opencl_info();
  std::cout << "dic " << info.version << " (" << info.build_type << ", " << info.compiler << ")\n"
            << "libraries:";
  for (const std::string& library : info.libraries) std::cout << "  " << library;
  std::cout << "\ncpu:        " << info.cpu << "\nsimd:       " << info.simd_target << "\ncuda:       ";
  print_devices(info.cuda_note, info.devices);
  std::cout << "opencl:     ";
  print_devices(opencl.note, opencl.devices);
}

}  // namespace

void add_info(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("info", "Print versions, build options, devices and CPU features in use");
  command->callback(print_info);
}

}  // namespace dic::app
