// GCC 12 takes only 8 of the 64 bytes of a tile configuration for read, and leaves out the others. Then the first product of
// matrices ends the process. This reads all of them.
#if defined(__AMX_TILE__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>

static inline void hob_load_tile_config(const void *config) {
    __asm__ volatile("ldtilecfg %0" : : "m"(*static_cast<const char (*)[64]>(config)));
}

#define _tile_loadconfig hob_load_tile_config
#endif
