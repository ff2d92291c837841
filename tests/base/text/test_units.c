/* Seconds and bytes as people read them: three digits, the unit that fits. */
#include "base/text/text.h"
#include "check.h"

static void is(cd_buf *b, const char *want) {
    assert_string_equal(b->p, want);
    cd_buf_clear(b);
}

TEST(seconds) {
    static const struct {
        double s;
        const char *want;
    } tab[] = {
        {0, "0.00 us"},       {1, "1.00 s"},        {12.34, "12.3 s"},       {123.4, "123 s"},
        {4567, "4567 s"},     {0.9995, "1.00 s"},   {0.9994, "999 ms"},      {0.1, "100 ms"},
        {0.0999, "99.9 ms"},  {0.00123, "1.23 ms"}, {0.00099951, "1.00 ms"}, {45.6e-6, "45.6 us"},
        {7.89e-9, "7.89 ns"}, {1e-12, "0.00 ns"},   {INFINITY, "-"},         {NAN, "-"}};
    cd_buf b = {0};
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        cd_units_put_seconds(&b, tab[k].s);
        is(&b, tab[k].want);
    }
    cd_units_put_seconds_wide(&b, 0.00123);
    is(&b, "  1.23 ms");
    cd_buf_free(&b);
}

TEST(bytes) {
    static const struct {
        double n;
        const char *want;
    } tab[] = {{0, "0 B"},
               {1023, "1023 B"},
               {1024, "1 KiB"},
               {1536, "1.5 KiB"},
               {1048576, "1 MiB"},
               {3.25 * 1073741824, "3.25 GiB"},
               {1099511627776, "1 TiB"},
               {1125899906842624, "1024 TiB"}};
    cd_buf b = {0};
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        cd_units_put_bytes(&b, tab[k].n);
        is(&b, tab[k].want);
    }
    cd_buf_free(&b);
}

TESTS(NULL, NULL, seconds, bytes)
