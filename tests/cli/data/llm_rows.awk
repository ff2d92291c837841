# A hand-made table of matrix products and all-reduces on three GPUs: time = launch + operations or bytes over a rate of the GPU.
BEGIN {
    print "op,device,stack,m,n,k,num_gpus,message_bytes,latency_s"
    split("a100-sxm4-80gb h100 l40s", gpu); split("2.5e14 7e14 2e14", rate); split("2e12 3e12 8e11", bytes)
    for (g = 1; g <= 3; g++) {
        for (m = 1; m <= 4096; m *= 4) for (n = 512; n <= 8192; n *= 2) for (k = 512; k <= 8192; k *= 4) for (s = 1; s <= 2; s++)
            printf "gemm,%s,%s,%d,%d,%d,,,%.5g\n", gpu[g], s == 1 ? "vllm-1" : "trtllm-2", m, n, k, (3e-6 + 2 * m * n * k / rate[g] + 2 * n * k / bytes[g]) * (1 + s / 10)
        for (b = 1024; b <= 1e8; b *= 4) printf "all_reduce,%s,vllm-1,,,,8,%d,%.5g\n", gpu[g], b, 8e-6 + b / (g == 3 ? 1e10 : 1e11)
    }
}
