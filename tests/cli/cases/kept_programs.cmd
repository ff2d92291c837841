# programs: rows, trees and sources of fixed records, and the schedules that a seed draws
# Long: no sanitizer, one processor.
. "$T/lib.sh"
for l in 1 13 41 66 86; do
    kept "rows $l" cdmpp-extract --tasks "$K" --print "$HELD:$l"
    kept "rows $l, JSON" cdmpp-extract --tasks "$K" --json --print "$HELD:$l"
done
kept source cdmpp-profile records --emit-source --dialect c --isa avx2 --tasks "$K" --out c.txt "$HELD"
kept_files c.txt
echo "--- drawn"
for n in squeezenet-1.1 bert-tiny yolov3-tiny mobilenet-v3-small gru dcgan resnet3d-18; do
    cdmpp-profile --list-tasks --network $n --target cuda --out-tasks gpu.tasks.json >/dev/null
    cdmpp-profile --list-tasks --network $n --target "$CPU" --out-tasks cpu.tasks.json >/dev/null
    kept "$n cpu" cdmpp-profile draw --tasks cpu.tasks.json --trials 2 --seed 5 --target "$CPU" --out $n.cpu.json
    kept "$n gpu" cdmpp-profile draw --tasks gpu.tasks.json --trials 2 --seed 7 --target cuda --out $n.gpu.json
    kept_files $n.cpu.json $n.gpu.json
    kept "$n C" cdmpp-profile records --emit-source --dialect c --isa avx512 --tasks cpu.tasks.json $n.cpu.json
    for d in opencl cuda; do kept "$n $d" cdmpp-profile records --emit-source --dialect $d --tasks gpu.tasks.json $n.gpu.json; done
    kept "$n rows" cdmpp-extract --tasks gpu.tasks.json --print "$n.gpu.json:3"
done
