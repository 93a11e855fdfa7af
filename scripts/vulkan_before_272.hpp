// Names that ggml's Vulkan backend uses and that came with Vulkan 1.3.272. Debian 12 has the headers of 1.3.239.
// ggml only passes them on, to a validation layer that hob does not turn on.
#pragma once

// Every file of ggml includes this one, and an SDK's headers are in the search path of the Vulkan backend alone.
#if __has_include(<vulkan/vulkan_core.h>)
#include <vulkan/vulkan_core.h>

#ifndef VK_EXT_layer_settings

#include <cstdint>
#include <vector>

namespace vk {

enum class LayerSettingTypeEXT { eBool32 = 0 };

// These two have the layout of VkLayerSettingEXT and VkLayerSettingsCreateInfoEXT.
struct LayerSettingEXT {
    const char * pLayerName;
    const char * pSettingName;
    LayerSettingTypeEXT type;
    uint32_t valueCount;
    const void * pValues;
};

struct LayerSettingsCreateInfoEXT {
    explicit LayerSettingsCreateInfoEXT(const std::vector<LayerSettingEXT> & settings)
        : settingCount(static_cast<uint32_t>(settings.size())), pSettings(settings.data()) {}

    VkStructureType sType = static_cast<VkStructureType>(1000496000);
    const void * pNext = nullptr;
    uint32_t settingCount;
    const LayerSettingEXT * pSettings;
};

}  // namespace vk

#endif
#endif
