/* Damaged and hostile image and sound files: an error, never a crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/image_files.h"
#include "kernel/jpeg_code.h"
#include "kernel/png_code.h"
#include "kernel/wav.h"

static const struct jpeg_options plain = { .ratio = 1,
                                           .fancy = true,
                                           .least = 1 };

static void decode_all(const void *data, size_t len)
{
    struct status st = STATUS_INIT;
    struct tensor t = { 0 };
    struct wav w;

    if (!png_decode(data, len, 0, DT_UINT8, &t, &st))
        tensor_unref(&t);
    if (!png_decode(data, len, 4, DT_UINT16, &t, &st))
        tensor_unref(&t);
    if (!jpeg_decode(data, len, &plain, &t, &st))
        tensor_unref(&t);
    if (!image_gif(data, len, &t, &st))
        tensor_unref(&t);
    if (!image_bmp(data, len, 0, &t, &st))
        tensor_unref(&t);
    (void)!wav_parse(data, len, &w, &st);
}

/* Every prefix of a file, and each of its bytes changed. */
static void damage(const struct text *file)
{
    char *copy = malloc(file->len);

    for (size_t n = 0; n < file->len; n++) {
        memcpy(copy, file->data, file->len);
        decode_all(copy, n);
        copy[n] = (char)(copy[n] ^ 0xff);
        decode_all(copy, file->len);
    }
    free(copy);
}

static void test_damaged_files_are_refused(void **state)
{
    static const char gif[] = "GIF89a\x02\0\x02\0\x80\0\0\1\2\3\xff\xfe\xfd"
                              "!\xf9\4\0\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\2D\1\0;";
    static const struct jpeg_encoding e = { .quality = 80, .downsample = true };
    uint8_t pixels[6 * 5 * 3];
    float samples[20] = { 0 };
    struct status st = STATUS_INIT;
    struct text file = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = (uint8_t)(i * 7);
    assert_int_equal(png_encode(pixels, 6, 5, 3, 8, -1, &file, &st), MST_OK);
    damage(&file);
    file.len = 0;
    assert_int_equal(jpeg_encode(pixels, 6, 5, 3, &e, &file, &st), MST_OK);
    damage(&file);
    file.len = 0;
    text_add(&file, gif, sizeof(gif) - 1);
    damage(&file);
    file.len = 0;
    assert_int_equal(wav_encode(samples, 10, 2, 8000, &file, &st), MST_OK);
    damage(&file);
    text_done(&file);
}

static void test_sizes_that_a_file_claims_are_not_believed(void **state)
{
    uint8_t bmp[64] = "BM";
    struct tensor t = { 0 };
    struct status st = STATUS_INIT;

    (void)state;
    bmp[10] = 54;
    memset(bmp + 18, 0x7f, 8);
    bmp[28] = 24;
    assert_int_equal(image_bmp(bmp, sizeof(bmp), 0, &t, &st),
                     MST_INVALID_ARGUMENT);
    memset(bmp + 22, 0x00, 4);
    bmp[25] = 0x80; /* the least of all heights */
    assert_int_equal(image_bmp(bmp, sizeof(bmp), 0, &t, &st),
                     MST_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged_files_are_refused),
        cmocka_unit_test(test_sizes_that_a_file_claims_are_not_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
