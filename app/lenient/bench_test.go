package lenient_test

import (
	"fmt"
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
// once. All are read in every way below.
var shapes = []struct {
	name string
	of   func(size int) string
}{
	{"flat", func(size int) string {
		return `{"free":{` + repeat(size, func(i int) string { return fmt.Sprintf(`"key%07d":"value"`, i) }) + `}}`
	}},
	{"set", func(size int) string {
		return `{"set":[` + repeat(size, func(i int) string { return fmt.Sprintf(`"name%07d"`, i) }) + `]}`
	}},
	{"map", func(size int) string {
		return `{"map":{` + repeat(size, func(i int) string { return fmt.Sprintf(`"key%07d":%d`, i, i) }) + `}}`
	}},
	{"deep", func(size int) string {
		return `{"free":[` + repeat(size, func(int) string { return nest(90, "1") }) + `]}`
	}},
	{"deep objects", func(size int) string {
		return `{"free":[` + repeat(size, func(int) string { return strings.Repeat(`{"key":`, 90) + "1" + strings.Repeat("}", 90) }) + `]}`
	}},
	{"too deep", func(size int) string {
		return `{"free":[` + repeat(size, func(int) string { return nest(9000, "1") }) + `]}`
	}},
	{"wide with errors", func(size int) string {
		return `{"list":[` + repeat(size, func(int) string { return "7" }) + `]}`
	}},
	{"long key with errors", func(size int) string {
		return `{"maps":{"` + strings.Repeat("k", size/2) + `":{` + repeat(size/2, func(i int) string { return fmt.Sprintf(`"%d":[]`, i) }) + `}}}`
	}},
	{"long key", func(size int) string {
		return `{"maps":{"` + strings.Repeat("k", size/2) + `":{` + repeat(size/2, func(i int) string { return fmt.Sprintf(`"%d":""`, i) }) + `}}}`
	}},
	{"long keys, NUL", func(size int) string {
		return strings.Repeat(`{"`+strings.Repeat("k", size/180)+`":`, 90) + "[" + repeat(size/2, func(int) string { return `"\u0000"` }) + "]" + strings.Repeat("}", 90)
	}},
}

// readAll reads a document in every way that a decoder does.
func readAll(body []byte) error {
	o, err := lenient.Read(body)
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

// BenchmarkDecode: ns/B must be about the same for every size of a shape.
func BenchmarkDecode(b *testing.B) {
	for _, shape := range shapes {
		for _, size := range []int{16 << 10, 256 << 10, 1 << 20, 4 << 20} {
			body := []byte(shape.of(size))
			b.Run(fmt.Sprintf("%s/%dKB", shape.name, size>>10), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					readAll(body) //nolint:errcheck // refusing costs too
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(body)), "ns/B")
			})
		}
	}
}
