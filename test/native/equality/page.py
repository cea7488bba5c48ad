import hashlib, json, re
s = 0
for i in range(200):
    d = hashlib.sha256(str(i).encode()).hexdigest()
    o = json.loads(json.dumps({"a": d, "n": [i, i*2, {"k": d[:4]}]}))
    s += len(re.findall(r"[0-9]+", o["a"]))
print(s)
