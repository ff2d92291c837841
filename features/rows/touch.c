/* What the stores under one loop touch, by buffer, so that a store of hundreds of buffers costs no
 * more than it has. */
#include "features/rows/rows_internal.h"

enum { FEW = 16 }; /* buffers that are looked for one by one: nearly all programs have no more */

void cd_touch_clear(cd_touch_list *l) {
    l->n = l->n_buffer = 0;
    l->summed = false;
}

void cd_touch_free(cd_touch_list *l) {
    cd_mem_free(l->p);
    cd_mem_free(l->buffer);
    cd_mem_free(l->slot);
    *l = (cd_touch_list){0};
}

static uint32_t first_slot(const cd_touch_list *l, uint32_t tensor) {
    return (uint32_t)cd_rng_mix(tensor) & (l->n_slot - 1);
}

static void enter(cd_touch_list *l, uint32_t k) {
    uint32_t i = first_slot(l, l->buffer[k].tensor);
    while (l->slot[i]) i = (i + 1) & (l->n_slot - 1);
    l->slot[i] = k + 1;
}

/* The slots of all buffers, made when there are more than FEW and again when they are half full. */
static bool make_slots(cd_touch_list *l) {
    uint32_t n = 4 * FEW;
    while (n < 4 * l->n_buffer) n *= 2;
    uint32_t *slot = cd_mem_zalloc(n, sizeof *slot);
    if (!slot) return false;
    cd_mem_free(l->slot);
    l->slot = slot;
    l->n_slot = n;
    for (uint32_t k = 0; k < l->n_buffer; k++) enter(l, k);
    return true;
}

const cd_touch_buffer *cd_touch_find(const cd_touch_list *l, uint32_t tensor) {
    if (l->n_buffer <= FEW) {
        for (uint32_t k = 0; k < l->n_buffer; k++)
            if (l->buffer[k].tensor == tensor) return &l->buffer[k];
        return NULL;
    }
    for (uint32_t i = first_slot(l, tensor); l->slot[i]; i = (i + 1) & (l->n_slot - 1))
        if (l->buffer[l->slot[i] - 1].tensor == tensor) return &l->buffer[l->slot[i] - 1];
    return NULL;
}

/* The buffer of a tensor, a new one at the end. NULL: out of memory. */
static cd_touch_buffer *buffer_of(cd_touch_list *l, uint32_t tensor) {
    const cd_touch_buffer *known = cd_touch_find(l, tensor);
    if (known) return &l->buffer[known - l->buffer];
    if (CD_GROW(l->buffer, l->n_buffer, l->cap_buffer)) return NULL;
    l->buffer[l->n_buffer++] = (cd_touch_buffer){.tensor = tensor};
    const uint32_t k = l->n_buffer - 1;
    if (l->n_buffer == FEW + 1 || (l->n_buffer > FEW && 2 * l->n_buffer > l->n_slot)) {
        if (!make_slots(l)) {
            l->n_buffer--;
            return NULL;
        }
    } else if (l->n_buffer > FEW) {
        enter(l, k);
    }
    return &l->buffer[k];
}

bool cd_touch_add(cd_touch_list *l, uint32_t tensor, uint32_t bytes, int64_t elements) {
    if (CD_GROW(l->p, l->n, l->cap)) return false;
    cd_touch_buffer *b = buffer_of(l, tensor);
    if (!b) return false;
    const float e = (float)elements;
    if (!b->n++) b->first = l->n, b->least = e;
    else l->p[b->last].next = l->n;
    if (e < b->least) b->least = e;
    b->last = l->n;
    l->p[l->n++] = (cd_touch){.bytes = bytes, .elements = elements};
    l->summed = false;
    return true;
}

/* Float sums in TVM's order: buffers by reverse first appearance, entries in order. */
static void sum(cd_touch_list *l) {
    l->sum_bytes = l->sum_element = 0.0F;
    for (uint32_t k = l->n_buffer; k-- > 0;) {
        const cd_touch_buffer *b = &l->buffer[k];
        for (uint32_t j = b->first, m = 0; m < b->n; m++, j = l->p[j].next) {
            /* Sizes of hostile shapes wrap around, as TVM's do. */
            l->sum_bytes += (float)(int64_t)((uint64_t)l->p[j].elements * (uint64_t)l->p[j].bytes);
            l->sum_element += (float)l->p[j].bytes;
        }
    }
    l->summed = true;
}

float cd_touch_bytes(cd_touch_list *l, bool elements) {
    if (!l->summed) sum(l);
    return elements ? l->sum_bytes : l->sum_element;
}
