package catalog

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"loom/app/loom"
)

// Limits of an archive, so that a small body cannot unpack into a large one.
const (
	// maxArchive is how much an archive may hold unpacked, in bytes.
	maxArchive = 64 << 20
	// maxArchiveFile is the largest file in it, in bytes.
	maxArchiveFile = 4 << 20
	// maxArchiveFiles is how many files and folders it may name.
	maxArchiveFiles = 100_000
)

// IsArchive reports whether a body is compressed, by its first bytes: content
// types of clients say nothing.
func IsArchive(body []byte) bool { return bytes.HasPrefix(body, []byte{0x1f, 0x8b}) }

// ReadBundle reads an export in either of its forms: the JSON document, or the
// compressed folder, also as a zip. Errors: as DecodeBundle and DecodeArchive.
func ReadBundle(body []byte) (Bundle, error) {
	switch {
	case IsArchive(body):
		return DecodeArchive(body)
	case bytes.HasPrefix(body, []byte("PK\x03\x04")):
		packed, err := tarOfZip(body)
		if err != nil {
			return Bundle{}, err
		}
		return DecodeArchive(packed)
	}
	return DecodeBundle(body)
}

// tarOfZip repacks a zip for DecodeArchive, with the content of those files alone that may be entries.
// Errors are Invalid: what is no zip, or broken, or too large.
func tarOfZip(body []byte) ([]byte, error) {
	files, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return nil, badArchive(err, "The archive is broken, or no zip.")
	}
	var out bytes.Buffer
	packed, _ := gzip.NewWriterLevel(&out, gzip.NoCompression) // the level is one
	tarred := tar.NewWriter(packed)
	left := int64(maxArchive)
	for _, f := range files.File {
		header := &tar.Header{Name: f.Name, Mode: 0o644, Typeflag: tar.TypeReg}
		switch {
		case f.Mode().IsDir():
			header.Typeflag = tar.TypeDir
		case !f.Mode().IsRegular():
			header.Typeflag = tar.TypeChar // refused where it would be an entry
		}
		var content []byte
		if header.Typeflag == tar.TypeReg && path.Ext(f.Name) == ".json" {
			from, err := f.Open()
			if err != nil {
				return nil, badArchive(err, "The archive is broken, or no zip.")
			}
			content, err = io.ReadAll(io.LimitReader(from, min(left, maxArchiveFile)+1))
			if err = errors.Join(err, from.Close()); err != nil {
				return nil, badArchive(err, "The archive breaks off, or is broken.")
			}
		}
		if left -= int64(len(content)); left < 0 {
			return nil, tooLarge()
		}
		header.Size = int64(len(content))
		if err := tarred.WriteHeader(header); err != nil {
			return nil, badArchive(err, "The archive is broken, or no zip.")
		}
		if _, err := tarred.Write(content); err != nil {
			return nil, err
		}
	}
	err = errors.Join(tarred.Close(), packed.Close())
	return out.Bytes(), err
}

// DecodeArchive reads a catalog folder from a gzip-compressed
// tar, whether its content or the folder itself was packed; other files are left out.
// Errors are Invalid: what is no such archive, or a broken one, or too large, or names a
// path twice or one outside of itself, or holds nothing of a catalog. Mistakes in entries
// are in Bundle.Invalid.
func DecodeArchive(body []byte) (Bundle, error) {
	around := folderAround(body)
	unpacked, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return Bundle{}, badArchive(err, "The archive is not compressed with gzip.")
	}
	limited := &io.LimitedReader{R: unpacked, N: maxArchive + 1}
	files := tar.NewReader(limited)
	b := newBundle()
	seen := map[string]bool{}
	for {
		header, err := files.Next()
		switch {
		case limited.N <= 0:
			return Bundle{}, tooLarge()
		case errors.Is(err, io.EOF):
			if len(b.named) == 0 {
				return Bundle{}, loom.NewError(loom.Invalid, "The archive holds no folder of a catalog, such as %s, neither at its top nor in the one folder there.", loom.KindService)
			}
			return b.whole(), drained(limited)
		case err != nil:
			return Bundle{}, badArchive(err, "The archive is broken, or no tar.")
		case header.Typeflag == tar.TypeXGlobalHeader:
			continue // no file: what git writes of a commit
		}
		kind, err := archivePath(header.Name, around, seen)
		if err != nil {
			return Bundle{}, err
		}
		if kind != "" {
			b.named[kind] = true
		}
		name, isEntry := strings.CutSuffix(path.Base(header.Name), ".json")
		if kind == "" || !isEntry || header.Typeflag == tar.TypeDir {
			continue
		}
		if header.Typeflag != tar.TypeReg {
			return Bundle{}, loom.NewError(loom.Invalid, "The archive holds “%s”, which is no plain file.", shownPath(header.Name))
		}
		if header.Size > maxArchiveFile {
			return Bundle{}, loom.NewError(loom.Invalid, "The file “%s” of the archive is larger than %d MiB.", shownPath(header.Name), maxArchiveFile>>20)
		}
		content, err := io.ReadAll(files)
		switch {
		case limited.N <= 0:
			return Bundle{}, tooLarge()
		case err != nil:
			return Bundle{}, badArchive(err, "The archive breaks off, or is broken.")
		}
		b.addFile(kind, name, content)
	}
}

// drained reads on to the end of the compressed data, where its checksum is: an
// archive that was cut off after the tar's own end is refused, too.
func drained(limited *io.LimitedReader) error {
	if _, err := io.Copy(io.Discard, limited); err != nil {
		return badArchive(err, "The archive breaks off, or is broken.")
	}
	if limited.N <= 0 {
		return tooLarge()
	}
	return nil
}

// folderAround is the one folder that all of an archive lies in, but for dot files at its
// top; "" where there is none, or where that is a folder of a catalog. What is wrong with
// the archive is found when it is read.
func folderAround(body []byte) string {
	unpacked, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return ""
	}
	files, around := tar.NewReader(&io.LimitedReader{R: unpacked, N: maxArchive + 1}), ""
	for n := 0; n <= maxArchiveFiles; n++ {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return around
		}
		if err != nil {
			return ""
		}
		top, _, within := strings.Cut(path.Clean(header.Name), "/")
		switch {
		case header.Typeflag == tar.TypeXGlobalHeader, strings.HasPrefix(top, "."):
		case !within && header.Typeflag != tar.TypeDir, around != "" && top != around, slices.Contains(loom.TenantKinds, loom.EntityKind(top)):
			return ""
		default:
			around = top
		}
	}
	return ""
}

// archivePath gives the kind whose folder a path lies in, "" for other files; around is the
// folder that is taken off first. It refuses what could mean another place than it says.
func archivePath(name, around string, seen map[string]bool) (loom.EntityKind, error) {
	clean := path.Clean(name)
	if strings.HasPrefix(name, "/") || strings.ContainsAny(name, "\x00\\") || slices.Contains(strings.Split(name, "/"), "..") {
		return "", loom.NewError(loom.Invalid, "The archive names “%s”, which leads out of it.", shownPath(name))
	}
	if clean != "." && seen[clean] {
		return "", loom.NewError(loom.Invalid, "The archive holds “%s” twice.", shownPath(name))
	}
	seen[clean] = true
	if len(seen) > maxArchiveFiles {
		return "", loom.NewError(loom.Invalid, "The archive holds more than %d files.", maxArchiveFiles)
	}
	if around != "" {
		clean = strings.TrimPrefix(clean, around+"/")
	}
	folder, rest, _ := strings.Cut(clean, "/")
	kind := loom.EntityKind(folder)
	if !slices.Contains(loom.TenantKinds, kind) || strings.Contains(rest, "/") {
		return "", nil
	}
	return kind, nil
}

func shownPath(name string) string {
	runes := []rune(strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", "?"), "?"))
	return string(runes[:min(len(runes), 100)])
}

func tooLarge() error {
	return loom.NewError(loom.Invalid, "The archive holds more than %d MiB when it is unpacked.", maxArchive>>20)
}

func badArchive(err error, message string) error {
	if errors.Is(err, loom.Unavailable) {
		return err // it could not be read, which says nothing of it
	}
	return &loom.Error{Kind: loom.Invalid, Message: message, Err: err}
}

// Document is the export document as it is written for people and version
// control: sorted keys, two blanks of indentation.
func (b Bundle) Document() ([]byte, error) { return sorted(b) }

// Archive is the catalog as a folder, packed: the same catalog
// always gives the same bytes. Files lack what is given on saving (the version)
// and what is only shown (names of sealed fields).
func (b Bundle) Archive() ([]byte, error) {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	files := tar.NewWriter(packed)
	for _, kind := range loom.TenantKinds {
		if err := files.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: string(kind) + "/", Mode: 0o755}); err != nil {
			return nil, fmt.Errorf("pack the folder %s: %w", kind, err)
		}
		for _, entry := range b.Entries[kind] {
			content, err := file(entry)
			if err != nil {
				return nil, err
			}
			name := string(kind) + "/" + entry.Meta().Name + ".json"
			if err := files.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
				return nil, fmt.Errorf("pack %s: %w", name, err)
			}
			if _, err := files.Write(content); err != nil {
				return nil, fmt.Errorf("pack %s: %w", name, err)
			}
		}
	}
	if err := files.Close(); err != nil {
		return nil, fmt.Errorf("pack the catalog: %w", err)
	}
	if err := packed.Close(); err != nil {
		return nil, fmt.Errorf("pack the catalog: %w", err)
	}
	return out.Bytes(), nil
}

// file is an entry as a file of the folder.
func file(entry loom.Entry) ([]byte, error) {
	document, err := tree(entry)
	if err != nil {
		return nil, err
	}
	if object, ok := document.(map[string]any); ok {
		delete(object, "version")
		delete(object, "sealed")
	}
	return sorted(document)
}

// sorted writes a value with sorted keys, numbers as they were.
func sorted(v any) ([]byte, error) {
	document, err := tree(v)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(document)
	return out.Bytes(), err
}
