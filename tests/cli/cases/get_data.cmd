# public data sets: fetched, resumed, checked, unpacked; from a server of this machine
cat >serve.py <<'X'
import http.server, os, sys
class H(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_GET(self):
        path, _, query = self.path.partition('?')
        if path == '/form' and 'uuid=' not in query: # Google Drive's question
            body = b'<!DOCTYPE html><html><form><input type="hidden" name="uuid" value="12-ab"></form></html>'
        elif path == '/busy': body = b'<!DOCTYPE html><html>Quota exceeded</html>'
        else: body = open('a.zip', 'rb').read()
        at = 0
        if 'Range' in self.headers: at = int(self.headers['Range'].split('=')[1].split('-')[0])
        with open('asked', 'a') as f: f.write('%s from %d\n' % (self.path, at))
        if at >= len(body): self.send_response(416); self.end_headers(); return
        self.send_response(206 if at else 200)
        if at: self.send_header('Content-Range', 'bytes %d-%d/%d' % (at, len(body) - 1, len(body)))
        self.send_header('Content-Length', str(len(body) - at)); self.end_headers()
        self.wfile.write(body[at:])
s = http.server.HTTPServer(('127.0.0.1', 0), H)
open('port.new', 'w').write(str(s.server_port)); os.rename('port.new', 'port')
s.serve_forever()
X
mkdir -p dataset_gpu/measure_records/t4; head -c 3000 /dev/zero >dataset_gpu/measure_records/t4/a.json
python3 -m zipfile -c a.zip dataset_gpu
python3 serve.py & server=$!
while [ ! -s port ]; do sleep 0.05; done
at=http://127.0.0.1:$(cat port) n=$(wc -c <a.zip)
get() { "$ROOT/scripts/get_data.sh" "$@" 2>err; st=$?; grep get_data: err; [ $st -eq 0 ] || echo "status $st"; }
hex() { sed "s/[0-9a-f]\{64\}/HEX/g; s/$n bytes/N bytes/; s|$at|AT|g"; }
"$ROOT/scripts/get_data.sh" --list
echo "--- fetched; once more"
get --to d --url "$at/a" tenset-gpu | hex; find d -type f | sort
get --to d --url "$at/a" tenset-gpu
rm -r d/dataset_gpu; get --to d --url "$at/a" tenset-gpu | hex
echo "--- resumed, also where all is there already"
mkdir e; head -c 100 a.zip >e/dataset_gpu_v3.3.zip.part; : >asked
get --to e --url "$at/a" tenset-gpu | hex; cat asked; ls e
mkdir f; cp a.zip f/dataset_gpu_v3.3.zip.part; get --to f --url "$at/a" tenset-gpu | hex
echo "--- Google Drive's question, and its refusal"
get --to g --url "$at/form?id=1&confirm=t" tenset-gpu | hex; ls g
get --to h --url "$at/busy" tenset-gpu | hex; ls h
echo "--- damaged, another file than before, another than published"
mkdir i; head -c 200 a.zip >i/dataset_gpu_v3.3.zip; get --to i tenset-gpu | hex
rm -r d/dataset_gpu; printf x >>d/dataset_gpu_v3.3.zip; get --to d tenset-gpu | sed "s/$((n + 1)) bytes/N+1 bytes/" | hex
get --to j --url "file://$PWD/a.zip" --sha256 "$(sha256sum a.zip | cut -d' ' -f1)" tenset-gpu | hex; ls j
get --to k --url "file://$PWD/a.zip" --sha256 00 tenset-gpu | hex
get --to l --url "$at/../nothing" nosuch
kill $server
