/* The list of built-in networks, for people and for programs. */
#include "profiler/network/zoo/zoo.h"

void cd_zoo_print_text(cd_buf *out) {
    cd_buf_putf(out, "%-20s %-12s %s\n", "network", "family", "size as published");
    for (size_t k = 0; k < cd_zoo_count(); k++) {
        const cd_zoo_entry *e = cd_zoo_at(k);
        cd_buf_putf(out, "%-20s %-12s %lld %s\n", e->name, e->family, (long long)e->size, e->what);
    }
}

void cd_zoo_print_json(cd_buf *out) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_json_write_key(&w, "networks");
    cd_json_write_open(&w, '[');
    for (size_t k = 0; k < cd_zoo_count(); k++) {
        const cd_zoo_entry *e = cd_zoo_at(k);
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "name", e->name);
        cd_json_write_member_str(&w, "family", e->family);
        cd_json_write_member_int(&w, "size", e->size);
        cd_json_write_member_str(&w, "unit", e->what);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}
