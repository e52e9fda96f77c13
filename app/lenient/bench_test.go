package lenient_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"loom/app/lenient"
)

// repeat joins what item gives until about size bytes are reached.
func repeat(size int, item func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(item(i))
	}
	return b.String()
}

// nest puts a value into arrays, depth of them.
func nest(depth int, value string) string {
	return strings.Repeat("[", depth) + value + strings.Repeat("]", depth)
}

// shapes are documents of about size bytes that a careless reader pays for more than
// once. All are read in every way below. None has more values than a bundle may have, up to 4 MiB.
var shapes = []struct {
	name string
	of   func(size int) string
	// refused is what the error says, "" where there is none. What is said of the
	// document's content is said after all of it was read.
	refused string
}{
	{"flat", func(size int) string {
		return `{"free":{` + repeat(size, func(i int) string { return fmt.Sprintf(`"key%07d":"value"`, i) }) + `}}`
	}, ""},
	{"set", func(size int) string {
		return `{"set":[` + repeat(size, func(i int) string { return fmt.Sprintf(`"name%07d"`, i) }) + `]}`
	}, ""},
	{"map", func(size int) string {
		return `{"map":{` + repeat(size, func(i int) string { return fmt.Sprintf(`"key%07d":"%d"`, i, i) }) + `}}`
	}, ""},
	{"deep", func(size int) string {
		return `{"free":[` + repeat(size, func(int) string { return nest(90, `"`+strings.Repeat("v", 300)+`"`) }) + `]}`
	}, ""},
	{"deep objects", func(size int) string {
		return `{"free":[` + repeat(size, func(int) string { return strings.Repeat(`{"key":`, 90) + "1" + strings.Repeat("}", 90) }) + `]}`
	}, ""},
	{"too deep, refused by the scan", func(size int) string {
		return `{"free":[` + repeat(size, func(int) string { return nest(9000, "1") }) + `]}`
	}, "nested"},
	{"too many values, refused by the scan", func(size int) string {
		return `{"free":[` + repeat(max(size, 3<<20), func(int) string { return "7" }) + `]}`
	}, "values"},
	{"wide with errors", func(size int) string {
		return `{"list":[` + repeat(size, func(int) string { return `"seven"` }) + `]}`
	}, "list"},
	{"long key with errors", func(size int) string {
		return `{"maps":{"` + strings.Repeat("k", size/2) + `":{` + repeat(size/2, func(i int) string { return fmt.Sprintf(`"%d":[]`, i) }) + `}}}`
	}, "maps"},
	{"long key", func(size int) string {
		return `{"maps":{"` + strings.Repeat("k", size/2) + `":{` + repeat(size/2, func(i int) string { return fmt.Sprintf(`"%d":""`, i) }) + `}}}`
	}, ""},
	{"long keys, NUL", func(size int) string {
		return strings.Repeat(`{"`+strings.Repeat("k", size/180)+`":`, 90) + "[" + repeat(size/2, func(int) string { return `"\u0000"` }) + "]" + strings.Repeat("}", 90)
	}, "NUL"},
}

// readAll reads a document in every way that a decoder does, with the limits of a bundle.
func readAll(body []byte) error {
	o, err := lenient.ReadBundle(body)
	if err != nil {
		return err
	}
	o.FreeObject("object")
	o.Free("free")
	o.Texts("set")
	o.Ints("ints")
	o.TextSets("sets")
	o.TextMap("map")
	o.Each("maps", func(_ string, m *lenient.Object) {
		for _, name := range m.Names() {
			m.Text(name)
		}
	})
	maps := o.Object("maps")
	for _, name := range maps.Names() {
		maps.TextMap(name)
	}
	o.EachOf("list", func(_ int, e *lenient.Object) { e.Text("name") })
	return o.Err()
}

// expect fails unless an error is the one that reading a shape ends with.
func expect(t testing.TB, refused string, err error) {
	t.Helper()
	switch {
	case refused == "" && err != nil:
		t.Fatalf("refused: %.300v", err)
	case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
		t.Fatalf("the error %.300v says nothing of %q", err, refused)
	}
}

// BenchmarkDecode: ns/B must be about the same for every size of a shape.
func BenchmarkDecode(b *testing.B) {
	for _, shape := range shapes {
		for _, size := range []int{16 << 10, 256 << 10, 1 << 20, 4 << 20} {
			body := []byte(shape.of(size))
			b.Run(fmt.Sprintf("%s/%dKB", shape.name, size>>10), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					expect(b, shape.refused, readAll(body))
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(body)), "ns/B")
			})
		}
	}
}

// TestReadingIsLinear: each shape is read to its end, and of a document of 16 times the size as much
// memory is taken for each byte. Time would depend on what else the machine does. It is not
// parallel, since it counts the memory of the whole process.
func TestReadingIsLinear(t *testing.T) { //nolint:paralleltest // see above
	for _, shape := range shapes {
		perByte := func(size int) float64 {
			body := []byte(shape.of(size))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := readAll(body)
			runtime.ReadMemStats(&after)
			expect(t, shape.refused, err)
			return float64(after.TotalAlloc-before.TotalAlloc) / float64(len(body))
		}
		small, large := perByte(64<<10), perByte(1<<20)
		t.Logf("%s: %.1f and %.1f bytes for each byte", shape.name, small, large)
		if large > 3*small+1 {
			t.Errorf("%s: a document of 64 KB takes %.1f bytes for each of its own, one of 1 MB %.1f", shape.name, small, large)
		}
	}
}
