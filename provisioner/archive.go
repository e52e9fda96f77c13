package provisioner

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Bounds of an unpacked archive.
const (
	maxArchiveBytes = 2 << 30
	maxArchiveCount = 200_000
)

// unpacker puts the entries of an archive below a directory. All writing goes
// through an os.Root, so that no link, however made, leads outside.
type unpacker struct {
	root  *os.Root
	bytes int64
	count int
	// limits, smaller in tests.
	maxBytes int64
	maxCount int
	links    [][2]string
}

// unpack unpacks the archive file (.tar.gz or .zip, told by its first bytes)
// into dir, which must be empty. It refuses absolute names, "..", links that
// point outside, devices, and more than the bounds allow. Of the modes it keeps
// the executable bits only.
func unpack(file, dir string) error {
	return unpackWithin(file, dir, maxArchiveBytes, maxArchiveCount)
}

func unpackWithin(file, dir string, maxBytes int64, maxCount int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacker{root: root, maxBytes: maxBytes, maxCount: maxCount}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	reader := bufio.NewReader(f)
	head, _ := reader.Peek(4)
	switch {
	case len(head) >= 2 && head[0] == 0x1f && head[1] == 0x8b:
		err = u.tarGz(reader)
	case len(head) >= 4 && string(head[:2]) == "PK":
		err = u.zip(f)
	default:
		err = errors.New("it is neither a .tar.gz nor a .zip file")
	}
	if err != nil {
		return err
	}
	return u.makeLinks()
}

func (u *unpacker) tarGz(r io.Reader) error {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch header.Typeflag {
		case tar.TypeDir:
			err = u.dir(header.Name)
		case tar.TypeReg:
			err = u.file(header.Name, fs.FileMode(header.Mode), archive)
		case tar.TypeSymlink:
			err = u.link(header.Name, header.Linkname)
		case tar.TypeXGlobalHeader:
		default:
			err = fmt.Errorf("%q is neither file, directory nor symbolic link", header.Name)
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacker) zip(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	archive, err := zip.NewReader(f, info.Size())
	if err != nil {
		return err
	}
	for _, entry := range archive.File {
		mode := entry.Mode()
		switch {
		case mode.IsDir():
			err = u.dir(entry.Name)
		case mode&fs.ModeSymlink != 0, mode.IsRegular():
			err = u.zipped(entry, mode)
		default:
			err = fmt.Errorf("%q is neither file, directory nor symbolic link", entry.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) zipped(entry *zip.File, mode fs.FileMode) error {
	content, err := entry.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	if mode&fs.ModeSymlink == 0 {
		return u.file(entry.Name, mode, content)
	}
	to, err := io.ReadAll(io.LimitReader(content, 4096))
	if err != nil {
		return err
	}
	return u.link(entry.Name, string(to))
}

// place checks and cleans a name and counts the entry.
func (u *unpacker) place(name string) (string, error) {
	clean := path.Clean(name)
	if name == "" || path.IsAbs(name) || !filepath.IsLocal(clean) || strings.ContainsAny(name, "\x00\\") {
		return "", fmt.Errorf("%q leads outside the archive", name)
	}
	for _, element := range strings.Split(name, "/") {
		if element == ".." {
			return "", fmt.Errorf("%q leads outside the archive", name)
		}
	}
	if u.count++; u.count > u.maxCount {
		return "", fmt.Errorf("it has more than %d entries", u.maxCount)
	}
	return clean, nil
}

func (u *unpacker) dir(name string) error {
	name, err := u.place(name)
	if err != nil || name == "." {
		return err
	}
	return u.root.MkdirAll(name, 0o755)
}

func (u *unpacker) file(name string, mode fs.FileMode, content io.Reader) error {
	name, err := u.place(name)
	if err != nil {
		return err
	}
	if err := u.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := u.root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644|mode.Perm()&0o111)
	if err != nil {
		return err
	}
	left := u.maxBytes - u.bytes
	n, err := io.Copy(file, io.LimitReader(content, left+1))
	u.bytes += n
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err == nil && n > left {
		err = fmt.Errorf("it unpacks to more than %d bytes", u.maxBytes)
	}
	return err
}

// link is remembered and made at the end, so that no entry is written through it.
func (u *unpacker) link(name, to string) error {
	clean, err := u.place(name)
	if err != nil {
		return err
	}
	if to == "" || path.IsAbs(to) || !filepath.IsLocal(path.Join(path.Dir(clean), to)) {
		return fmt.Errorf("link %q points outside the archive", name)
	}
	u.links = append(u.links, [2]string{clean, to})
	return nil
}

func (u *unpacker) makeLinks() error {
	for _, l := range u.links {
		if err := u.root.MkdirAll(path.Dir(l[0]), 0o755); err != nil {
			return err
		}
		if err := u.root.Symlink(l[1], l[0]); err != nil {
			return err
		}
	}
	// Links through links may still lead outside; following each one tells.
	for _, l := range u.links {
		if _, err := u.root.Stat(l[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("link %q points outside the archive", l[0])
		}
	}
	return nil
}

// settle makes dir/name the content of an archive unpacked in from: a single top
// directory is stripped, whatever its name.
func settle(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if len(entries) == 1 && entries[0].IsDir() {
		return os.Rename(filepath.Join(from, entries[0].Name()), to)
	}
	return os.Rename(from, to)
}
