package catalog

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"loom/app/loom"
)

// samples gives the documents of testdata to fn, with the index of their kind.
func samples(f *testing.F, fn func(kind uint8, body []byte)) {
	f.Helper()
	for i, kind := range loom.EntityKinds {
		files, err := filepath.Glob(filepath.Join("testdata", string(kind), "*.json"))
		if err != nil || len(files) == 0 {
			f.Fatalf("%s: no test data (%v)", kind, err)
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			fn(uint8(i), body)
		}
	}
}

func kindOf(index uint8) loom.EntityKind { return loom.EntityKinds[int(index)%len(loom.EntityKinds)] }

// refusal fails unless an error is Invalid and says what is wrong where.
func refusal(t *testing.T, err error) {
	t.Helper()
	e := loom.AsError(err)
	if !errors.Is(err, loom.Invalid) || e.Message == "" {
		t.Fatalf("not Invalid, or it says nothing: %v", err)
	}
	for _, field := range e.Fields {
		if field.Message == "" {
			t.Fatalf("no message about %q in %v", field.Field, err)
		}
	}
}

// FuzzDecode reads anything as an entry. What is read is written, read again and
// kept as the same, and its references and findings point to what they name.
func FuzzDecode(f *testing.F) {
	samples(f, func(kind uint8, body []byte) { f.Add(kind, body) })
	f.Add(uint8(3), []byte(`{"name":"x","dependencies":{"install":{"requires":["a/b","~"]},"provides":["x"]},"links":[{"url":"%host.%"}]}`))
	f.Add(uint8(4), []byte(`{"name":"x","extends":{"name":"x"},"includes":[{"name":"locked"}],"defaults":{"provider":"lab","services":["db",{"name":"web","config":{"a":"%no%"}}]},"constraints":{"layout":{"cantcoexist":[["db"]]},"services":{"a/b":{"hardwaretypes":["~1"],"quantities":{"max":0}}}}}`))
	f.Fuzz(func(t *testing.T, index uint8, body []byte) {
		kind := kindOf(index)
		entry, err := Decode(kind, body)
		if err != nil {
			refusal(t, err)
			return
		}
		first := marshal(t, entry)
		again, err := Decode(kind, first)
		if err != nil {
			t.Fatalf("what was written is not read again: %v\n%s", err, first)
		}
		if second := marshal(t, again); !bytes.Equal(first, second) {
			t.Fatalf("%s\nbecame\n%s", first, second)
		}
		stored, err := loom.ReadEntry(kind, first)
		if err != nil {
			t.Fatal(err)
		}
		if kept := marshal(t, stored); !bytes.Equal(first, kept) {
			t.Fatalf("%s\nis kept as\n%s", first, kept)
		}
		document, err := tree(entry)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range references(entry) {
			at, key := lookup(t, document, r.field)
			if at != r.name && key != r.name {
				t.Fatalf("the reference %+v is %v (%q) in\n%s", r, at, key, first)
			}
		}
		if !kind.Global() {
			points(t, kind, entry, document)
		}
	})
}

// points checks that findings point into the document.
func points(t *testing.T, kind loom.EntityKind, entry loom.Entry, document any) {
	t.Helper()
	c := catalogOf(t, sound())
	c.add(kind, entry)
	found, err := c.find(t.Context(), func(k loom.EntityKind, name string) bool { return k == kind && name == entry.Meta().Name })
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range found {
		if x.Message == "" || x.Remedy == "" {
			t.Fatalf("incomplete finding %+v", x)
		}
		field := x.Field
		if x.Value == "" { // something is missing: the place where it would be
			field = field[:strings.LastIndex(field, "/")]
		}
		lookup(t, document, field)
	}
}

// lookup gives what a JSON pointer names, and the last key.
func lookup(t *testing.T, document any, pointer string) (value any, key string) {
	t.Helper()
	value = document
	if pointer == "" {
		return value, ""
	}
	for _, part := range strings.Split(pointer[1:], "/") {
		key = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		there := false
		switch v := value.(type) {
		case map[string]any:
			value, there = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if there = err == nil && i >= 0 && i < len(v); there {
				value = v[i]
			}
		}
		if !there {
			t.Fatalf("%s leads nowhere in %v", pointer, document)
		}
	}
	return value, key
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// FuzzDecodeBundle reads anything as an export. What is read without mistakes is
// exported as the same, in both forms.
func FuzzDecodeBundle(f *testing.F) {
	samples(f, func(kind uint8, body []byte) {
		if k := kindOf(kind); !k.Global() {
			f.Add(append(append([]byte(`{"`+string(k)+`":[`), body...), `]}`...))
		}
	})
	f.Add([]byte(`{"services":[{"name":"a"},{"name":"a"},7,null,{}]}`))
	f.Add([]byte(`{"services":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		b, err := DecodeBundle(body)
		if err != nil {
			refusal(t, err)
			return
		}
		checkRead(t, b)
	})
}

// FuzzDecodeArchive unpacks anything.
func FuzzDecodeArchive(f *testing.F) {
	samples(f, func(kind uint8, body []byte) {
		k := kindOf(kind)
		entry, err := Decode(k, body)
		if err != nil || k.Global() {
			return
		}
		packed, err := Bundle{Entries: map[loom.EntityKind][]loom.Entry{k: {entry}}}.Archive()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed, false)
	})
	for _, plain := range []string{"services/x.json", "../services/x.json", "./services//x.json"} {
		f.Add(tarOf(f, plain, `{"name":"x"}`), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, plain bool) {
		if plain { // a tar that is not compressed yet, so that mutations reach it
			body = compress(t, body)
		}
		b, err := DecodeArchive(body)
		if err != nil {
			refusal(t, err)
			return
		}
		checkRead(t, b)
	})
}

// checkRead holds what was read against its own export.
func checkRead(t *testing.T, b Bundle) {
	t.Helper()
	for _, i := range b.Invalid {
		if i.Name == "" || len(i.Fields) == 0 {
			t.Fatalf("an invalid entry that says nothing: %+v", i)
		}
		for _, field := range i.Fields {
			if field.Message == "" {
				t.Fatalf("no message about %+v", i)
			}
		}
	}
	want, err := b.Document()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := b.Archive()
	if err != nil {
		t.Fatal(err)
	}
	for form, body := range map[string][]byte{"document": want, "archive": packed} {
		again, err := ReadBundle(body)
		if err != nil || len(again.Invalid) > 0 {
			t.Fatalf("the %s is not read again: %v, %+v", form, err, again.Invalid)
		}
		// An archive lists entries as it got them, and so does a document.
		if got, err := again.Document(); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("the %s\n%s\nbecame\n%s, %v", form, want, got, err)
		}
	}
}

func tarOf(t testing.TB, name, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func compress(t testing.TB, body []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
