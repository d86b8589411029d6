#pragma once

#include <dic/shared/host_device.hpp>  // shared with the CPU path
