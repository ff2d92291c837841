/* layout: the manual says what the table says; the content digest sees content. */
#include "dataset/file/file.h"

#include <stdio.h>
#include <string.h>

#include "check.h"

TEST(manual) {
    static char text[1 << 16];
    char want[400];
    size_t n = 0;
    FILE *f = fopen("docs/reference/dataset.md", "r");
    assert_non_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT; a++) {
        snprintf(want, sizeof want, "| `%s` | ", cd_layout[a].path);
        const char *row = strstr(text, want);
        snprintf(want, sizeof want, " | %s | %s |\n", cd_layout[a].units, cd_layout[a].meaning);
        if (!row || strncmp(strchr(row, '\n') - strlen(want) + 1, want, strlen(want)) != 0)
            print_error("docs/reference/dataset.md has no row for %s ending in%s",
                        cd_layout[a].path, want);
        assert_true(row && strncmp(strchr(row, '\n') - strlen(want) + 1, want, strlen(want)) == 0);
    }
    for (int d = 0; d < CD_LAYOUT_DICT_COUNT; d++)
        assert_non_null(strstr(text, cd_layout_dict_path[d]));
}

TEST(digest) {
    uint64_t n[CD_LAYOUT_ARRAY_COUNT] = {0};
    uint32_t crc[CD_LAYOUT_ARRAY_COUNT] = {0}, dict[CD_LAYOUT_DICT_COUNT] = {0};
    char a[65], b[65];
    cd_layout_content_digest(n, crc, dict, a);
    dict[CD_LAYOUT_DICT_SOURCE] = 7; /* the folder does not count */
    cd_layout_content_digest(n, crc, dict, b);
    assert_string_equal(a, b);
    for (int i = 0; i < CD_LAYOUT_ARRAY_COUNT; i++) {
        crc[i] = 1;
        cd_layout_content_digest(n, crc, dict, b);
        if (cd_layout_optional(i)) assert_string_equal(a, b); /* a file may lack them */
        else assert_string_not_equal(a, b);
        crc[i] = 0;
    }
    dict[CD_LAYOUT_DICT_TASK] = 1;
    cd_layout_content_digest(n, crc, dict, b);
    assert_string_not_equal(a, b);
}

TESTS(NULL, NULL, manual, digest)
