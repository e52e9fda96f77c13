// Package archivetest makes archives for tests, the malicious ones included.
package archivetest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// Entry is an entry of an archive. Kind is one of tar; 0 is a file, or a link where
// Link is set, or a folder where the name ends with a slash.
type Entry struct {
	Name, Content, Link string
	Kind                byte
	Mode                int64
}

func (e Entry) kind() byte {
	switch {
	case e.Kind != 0:
		return e.Kind
	case e.Link != "":
		return tar.TypeSymlink
	case strings.HasSuffix(e.Name, "/"):
		return tar.TypeDir
	}
	return tar.TypeReg
}

// TarGz packs the entries as they are.
func TarGz(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, e := range entries {
		header := &tar.Header{Name: e.Name, Linkname: e.Link, Typeflag: e.kind(), Mode: e.Mode}
		if header.Typeflag == tar.TypeReg {
			header.Size = int64(len(e.Content))
		}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Size > 0 {
			if _, err := archive.Write([]byte(e.Content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Zip packs the entries as they are, as far as a zip has such.
func Zip(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.Name, Method: zip.Deflate}
		content := e.Content
		switch e.kind() {
		case tar.TypeDir:
			header.Method = zip.Store
			header.SetMode(fs.ModeDir | 0o755)
		case tar.TypeSymlink:
			content = e.Link
			header.SetMode(fs.ModeSymlink | 0o777)
		case tar.TypeReg:
			header.SetMode(fs.FileMode(e.Mode).Perm()) //nolint:gosec // small
		case tar.TypeFifo:
			header.SetMode(fs.ModeNamedPipe | 0o644)
		default:
			header.SetMode(fs.ModeDevice | 0o644)
		}
		w, err := archive.CreateHeader(header)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Both are the formats that Loom takes, by the ending of their names.
var Both = map[string]func(testing.TB, ...Entry) []byte{"tar.gz": TarGz, "zip": Zip}

// Escape are the entries of an archive for the resource of that name that once led
// to a file of the host: “b” dangles while the archive is unpacked and leads into
// the resource when its top folder has got the resource's name; through it “stolen”
// then leads to the target, an absolute path. Depth is how many folders the resource
// lies below the root of the host.
func Escape(name, target string, depth int) []Entry {
	deep := "d0/d1/d2/d3"
	up := strings.Repeat("../", strings.Count(deep, "/")+2)
	return []Entry{
		{Name: "top/"},
		{Name: "top/sub/"},
		{Name: "top/metadata.rb", Content: "name 'harmless'\n", Mode: 0o644},
		{Name: "top/" + deep + "/keep", Content: "x", Mode: 0o644},
		{Name: "top/" + deep + "/b", Link: up + name + "/sub"},
		{Name: "top/stolen", Link: deep + "/b/" + strings.Repeat("../", depth+2) + strings.TrimPrefix(target, "/")},
	}
}

// Overlapping is a zip of n entries that all have the same content: size bytes of
// deflate that unpack to nothing.
func Overlapping(t testing.TB, n, size int) []byte {
	t.Helper()
	// Empty stored blocks, and a last one.
	stream := append(bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, size/5), 1, 0, 0, 0xff, 0xff)
	var one bytes.Buffer
	archive := zip.NewWriter(&one)
	w, err := archive.CreateRaw(&zip.FileHeader{Name: "f00000", Method: zip.Deflate, CompressedSize64: uint64(len(stream))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(stream); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	content := one.Bytes()
	end := bytes.LastIndex(content, []byte("PK\x05\x06"))
	begin := int(binary.LittleEndian.Uint32(content[end+16:]))
	entry := content[begin:end]
	out := bytes.Clone(content[:begin])
	for i := range n {
		out = append(out, bytes.Replace(entry, []byte("f00000"), []byte(fmt.Sprintf("f%05d", i)), 1)...)
	}
	size = len(out) - begin
	tail := bytes.Clone(content[end:])
	binary.LittleEndian.PutUint16(tail[8:], uint16(n))     //nolint:gosec // small
	binary.LittleEndian.PutUint16(tail[10:], uint16(n))    //nolint:gosec // small
	binary.LittleEndian.PutUint32(tail[12:], uint32(size)) //nolint:gosec // small
	return append(out, tail...)
}
