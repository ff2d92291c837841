/* Our OpenCL is OpenCL: numbers against the real headers, names, absent libraries. */
#include <stdlib.h>

#include "check.h"
#include "noopencl.h"

#if __has_include(<CL/cl.h>)
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#define SAME(ours, theirs) assert_int_equal((long long)(ours), (long long)(theirs))

TEST(test_numbers) {
    SAME(CD_CL_NOT_FOUND, CL_DEVICE_NOT_FOUND);
    SAME(CD_CL_BUILD_FAILURE, CL_BUILD_PROGRAM_FAILURE);
    SAME(CD_CL_PARTITION_FAILED, CL_DEVICE_PARTITION_FAILED);
    SAME(CD_CL_MEM_READ_WRITE, CL_MEM_READ_WRITE);
    SAME(CD_CL_MEM_USE_HOST_PTR, CL_MEM_USE_HOST_PTR);
    SAME(CD_CL_MAP_READ, CL_MAP_READ);
    SAME(CD_CL_MAP_WRITE, CL_MAP_WRITE);
    SAME(CD_CL_QUEUE_PROFILING, CL_QUEUE_PROFILING_ENABLE);
    SAME(CD_CL_DEVICE_GPU, CL_DEVICE_TYPE_GPU);
    SAME(CD_CL_DEVICE_CPU, CL_DEVICE_TYPE_CPU);
    SAME(CD_CL_NATIVE_KERNEL, CL_EXEC_NATIVE_KERNEL);
    SAME(CD_CL_BUFFER_REGION, CL_BUFFER_CREATE_TYPE_REGION);
    SAME(CD_CL_COMPLETE, CL_COMPLETE);
    SAME(CD_CL_DEVICE_ALIGN_BITS, CL_DEVICE_MEM_BASE_ADDR_ALIGN);
    SAME(CD_CL_DEVICE_EXECUTION, CL_DEVICE_EXECUTION_CAPABILITIES);
    SAME(CD_CL_PROFILING_QUEUED, CL_PROFILING_COMMAND_QUEUED);
    SAME(CD_CL_DEVICE_ANY, CL_DEVICE_TYPE_ALL);
    SAME(CD_CL_PLATFORM_VERSION, CL_PLATFORM_VERSION);
    SAME(CD_CL_PLATFORM_NAME, CL_PLATFORM_NAME);
    SAME(CD_CL_DEVICE_TYPE, CL_DEVICE_TYPE);
    SAME(CD_CL_DEVICE_UNITS, CL_DEVICE_MAX_COMPUTE_UNITS);
    SAME(CD_CL_DEVICE_GROUP_MAX, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    SAME(CD_CL_DEVICE_GROUP_SIZES, CL_DEVICE_MAX_WORK_ITEM_SIZES);
    SAME(CD_CL_DEVICE_CLOCK, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    SAME(CD_CL_DEVICE_ALLOC_MAX, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    SAME(CD_CL_DEVICE_CACHE_BYTES, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
    SAME(CD_CL_DEVICE_BYTES, CL_DEVICE_GLOBAL_MEM_SIZE);
    SAME(CD_CL_DEVICE_LOCAL_BYTES, CL_DEVICE_LOCAL_MEM_SIZE);
    SAME(CD_CL_DEVICE_NAME, CL_DEVICE_NAME);
    SAME(CD_CL_DEVICE_VENDOR, CL_DEVICE_VENDOR);
    SAME(CD_CL_DRIVER_VERSION, CL_DRIVER_VERSION);
    SAME(CD_CL_DEVICE_EXTENSIONS, CL_DEVICE_EXTENSIONS);
    SAME(CD_CL_PARTITION_EQUALLY, CL_DEVICE_PARTITION_EQUALLY);
    SAME(CD_CL_PROGRAM_BINARY_SIZES, CL_PROGRAM_BINARY_SIZES);
    SAME(CD_CL_PROGRAM_BINARIES, CL_PROGRAM_BINARIES);
    SAME(CD_CL_PROGRAM_LOG, CL_PROGRAM_BUILD_LOG);
    SAME(CD_CL_KERNEL_GROUP_MAX, CL_KERNEL_WORK_GROUP_SIZE);
    SAME(CD_CL_PROFILING_START, CL_PROFILING_COMMAND_START);
    SAME(CD_CL_PROFILING_END, CL_PROFILING_COMMAND_END);
}
#else
TEST(test_numbers) {
    print_message("no CL/cl.h\n");
    skip();
}
#endif

TEST(test_names) {
    static const struct {
        const char *text, *platform;
        long number;
        unsigned parts, part;
        bool good;
    } t[] = {{"", "", -1, 0, 0, true},
             {"1", "", 1, 0, 0, true},
             {"pocl:", "pocl", -1, 0, 0, true},
             {"pocl:0", "pocl", 0, 0, 0, true},
             {"0/2", "", 0, 2, 0, true},
             {"/2.1", "", -1, 2, 1, true},
             {"my GPU:3/4.3", "my GPU", 3, 4, 3, true},
             {":0", "", 0, 0, 0, false},
             {"x", "", 0, 0, 0, false},
             {"0/", "", 0, 0, 0, false},
             {"0/0", "", 0, 0, 0, false},
             {"0/2.2", "", 0, 0, 0, false},
             {"0/2.", "", 0, 0, 0, false},
             {"64", "", 0, 0, 0, false},
             {"-1", "", 0, 0, 0, false},
             {"0 ", "", 0, 0, 0, false}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cd_opencl_name n;
        cdmpp_err err = {0};
        assert_status(cd_opencl_parse_name(t[k].text, &n, &err),
                      t[k].good ? CDMPP_OK : CDMPP_ERANGE);
        if (!t[k].good) continue;
        assert_string_equal(n.platform, t[k].platform);
        assert_int_equal(n.number, t[k].number);
        assert_int_equal(n.parts, t[k].parts);
        assert_int_equal(n.part, t[k].part);
    }
}

/* The whole device and its halves; devices and platforms that are not there. */
TEST(test_devices) {
    cd_opencl whole, half, none;
    cdmpp_err err = {0};
    SKIP_WITHOUT_OPENCL();
    assert_ok(cd_opencl_open(&whole, "", &err));
    assert_true(whole.units > 0 && whole.group_max > 0 && whole.bytes > 0 && whole.name[0]);
    if (whole.units > 1) {
        assert_ok(cd_opencl_open(&half, "/2.1", &err));
        assert_int_equal(half.units, whole.units / 2);
        cd_opencl_close(&half);
    }
    assert_status(cd_opencl_open(&none, "63", &err), CDMPP_EBACKEND);
    assert_status(cd_opencl_open(&none, "no such platform:0", &err), CDMPP_EBACKEND);
    assert_status(cd_opencl_open(&none, "/256", &err), CDMPP_EBACKEND);
    cd_opencl_close(&whole);
    cd_opencl_close(&whole); /* twice is fine */
}

TESTS(NULL, NULL, test_numbers, test_names, test_devices)
