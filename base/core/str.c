/* Comparing and copying borrowed runs of bytes. An empty run may have a NULL pointer, which memcmp
 * must not get. */
#include "base/core/core.h"

#include <string.h>

cd_str cd_str_of(const char *z) { return (cd_str){z ? z : "", z ? strlen(z) : 0}; }

bool cd_str_is(cd_str s, const char *z) {
    const size_t n = strlen(z);
    return s.n == n && memcmp(s.p, z, n) == 0;
}

bool cd_str_eq(cd_str a, cd_str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Overlong forms, surrogates and what is beyond the last code point are not valid. */
size_t cd_str_utf8_len(cd_str s) {
    if (!s.n) return 0;
    const unsigned char *p = (const unsigned char *)s.p, c = *p;
    const size_t n = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
    if (!n || n > s.n) return 0;
    for (size_t k = 1; k < n; k++)
        if ((p[k] & 0xC0) != 0x80) return 0;
    if ((c == 0xE0 && p[1] < 0xA0) || (c == 0xED && p[1] >= 0xA0) || (c == 0xF0 && p[1] < 0x90) ||
        (c == 0xF4 && p[1] >= 0x90))
        return 0;
    return n;
}

bool cd_str_is_utf8(cd_str s) {
    for (size_t n; s.n; s.p += n, s.n -= n)
        if (!(n = cd_str_utf8_len(s))) return false;
    return true;
}

/* Where the rest does not match, the last star takes one letter more. */
bool cd_str_fits(const char *pattern, const char *name) {
    const char *star = NULL, *from = NULL;
    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return !*pattern;
}

/* ---- shorter ---- */
#define DOTS       3
#define SHORT_WORD 24 /* a word of so many letters stays */

/* in the middle of a letter of several bytes */
static bool goes_on(char c) { return ((unsigned char)c & 0xC0) == 0x80; }

/* Bytes at .. at + len of a text become at most `keep`: a third of them from the front, the name of
 * a file being at the end. */
static void cut(char *at, size_t len, size_t keep) {
    size_t head = keep > DOTS ? (keep - DOTS) / 3 : 0,
           tail = len - (keep > DOTS ? keep - DOTS - head : 0);
    while (head > 0 && goes_on(at[head])) head--;
    while (tail < len && goes_on(at[tail])) tail++;
    const size_t dots = keep < DOTS ? keep : DOTS;
    memcpy(at + head, "...", dots);
    memmove(at + head + dots, at + tail, strlen(at + tail) + 1);
}

void cd_str_cut_middle(char *text, size_t n) {
    const size_t len = strlen(text);
    if (len > n) cut(text, len, n);
}

void cd_str_shorten(char *text, size_t n) {
    size_t len;
    while ((len = strlen(text)) > n) {
        char *longest = text;
        size_t most = 0;
        for (char *p = text; *p;) {
            const size_t w = strcspn(p, " \n");
            if (w > most) longest = p, most = w;
            p += w + (p[w] != '\0');
        }
        if (most <= SHORT_WORD) break;
        cut(longest, most,
            most - (len - n) > SHORT_WORD && most > len - n ? most - (len - n) : SHORT_WORD);
    }
    if (len <= n) return;
    size_t end = n > DOTS ? n - DOTS : 0;
    while (end > 0 && goes_on(text[end])) end--;
    memcpy(text + end, "...", n < DOTS ? n : DOTS);
    text[end + (n < DOTS ? n : DOTS)] = '\0';
}

char *cd_str_dup(cd_arena *a, cd_str s) {
    char *z = cd_arena_alloc(a, s.n + 1, 1);
    if (!z) return NULL;
    if (s.n) memcpy(z, s.p, s.n);
    z[s.n] = '\0';
    return z;
}
