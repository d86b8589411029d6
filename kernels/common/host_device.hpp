#pragma once

#include <dic/shared/host_device.hpp>  // where the CPU path finds it too
