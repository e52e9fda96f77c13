package catalog

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"strings"

	"loom/app/loom"
)

// Limits of an archive of plugin resources.
const (
	// MaxResourceArchive is how large it may be, in bytes.
	MaxResourceArchive int64 = 1 << 30
	// maxArchiveContent is how much it may hold unpacked, in bytes.
	maxArchiveContent int64 = 4 << 30
	// maxArchiveResources is how many resources it may hold.
	maxArchiveResources = 500
)

// archivedResource is a file of an archive of plugin resources.
type archivedResource struct {
	loom.ResourceRef
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Odd is what is not as provisioners expect an archive to be, Unusable why they
	// would refuse it; "" for what is right, or is no archive by its type.
	Odd      string `json:"odd,omitempty"`
	Unusable string `json:"unusable,omitempty"`
}

// walkResources reads an archive of plugin resources and gives each of its files to
// take, with its content. Errors are Invalid: what is no such archive, or a broken one,
// or too large, or holds anything else.
func walkResources(r io.Reader, take func(ref loom.ResourceRef, size int64, content io.Reader) error) error {
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return badArchive(err, "The archive is not compressed with gzip.")
	}
	limited := &io.LimitedReader{R: unpacked, N: maxArchiveContent + 1}
	files := tar.NewReader(limited)
	seen := map[string]bool{}
	for {
		header, err := files.Next()
		switch {
		case limited.N <= 0:
			return archiveTooLarge()
		case errors.Is(err, io.EOF):
			return drainedResources(limited, len(seen))
		case err != nil:
			return badArchive(err, "The archive breaks off, or is no tar.")
		case header.Typeflag == tar.TypeDir:
			continue
		}
		ref, err := archivedRef(header)
		if err != nil {
			return err
		}
		if name := resourcePath(ref); seen[name] {
			return loom.NewError(loom.Invalid, "The archive holds “%s” twice.", shownPath(name))
		}
		seen[resourcePath(ref)] = true
		if len(seen) > maxArchiveResources {
			return loom.NewError(loom.Invalid, "The archive holds more than %d resources; make several archives of them.", maxArchiveResources)
		}
		if header.Size > DefaultMaxUpload {
			return loom.NewError(loom.Invalid, "The file “%s” of the archive is larger than %s, the limit for a plugin resource.", shownPath(header.Name), size(DefaultMaxUpload))
		}
		if err := take(ref, header.Size, files); err != nil {
			if limited.N <= 0 {
				return archiveTooLarge()
			}
			return err
		}
	}
}

func archiveTooLarge() error {
	return loom.NewError(loom.Invalid, "The archive holds more than %s; make several archives of it.", size(maxArchiveContent))
}

// drainedResources reads on to the checksum at the end: an archive that was cut off
// after the tar's own end is refused, too.
func drainedResources(limited *io.LimitedReader, n int) error {
	if _, err := io.Copy(io.Discard, limited); err != nil {
		return badArchive(err, "The archive breaks off, or is broken.")
	}
	switch {
	case limited.N <= 0:
		return archiveTooLarge()
	case n == 0:
		return loom.NewError(loom.Invalid, "The archive holds no plugin resource. They lie in it as <kind>/<plugin>/<type>/<name>, such as automatortypes/shell/scripts/setup.sh.")
	}
	return nil
}

// archivedRef reads which resource a file of an archive is.
func archivedRef(header *tar.Header) (loom.ResourceRef, error) {
	name := strings.TrimPrefix(header.Name, "./")
	parts := strings.Split(name, "/")
	switch {
	case header.Typeflag != tar.TypeReg:
		return loom.ResourceRef{}, loom.NewError(loom.Invalid, "The archive holds “%s”, which is no plain file.", shownPath(name))
	case len(parts) != 4 || path.Clean(name) != name || !loom.EntityKind(parts[0]).Global():
		return loom.ResourceRef{}, loom.NewError(loom.Invalid, "The archive holds “%s”; plugin resources lie in it as <kind>/<plugin>/<type>/<name>, such as automatortypes/shell/scripts/setup.sh.", shownPath(name))
	}
	ref := loom.ResourceRef{Kind: parts[0], Plugin: parts[1], Type: parts[2], Name: parts[3]}
	for _, part := range parts[1:] {
		if errs := loom.CheckName("name", part); len(errs) > 0 || strings.HasPrefix(part, ".") {
			return ref, loom.NewError(loom.Invalid, "The archive holds “%s”; a name has letters a to z (small or capital, no accents), digits, “_”, “-” and “.” only, and does not begin with “.”.", shownPath(name))
		}
	}
	if loom.SecretResource(ref.Type) {
		return ref, loom.NewError(loom.Invalid, "The archive holds “%s”, which is a secret by its type; take it out of the archive and upload it alone, under Plugin resources.", shownPath(name))
	}
	return ref, nil
}

// inventory reads an archive of plugin resources to its end and says what is in it.
func inventory(r io.Reader, inner *nested, isArchive func(loom.ResourceRef) bool) ([]archivedResource, error) {
	var found []archivedResource
	err := walkResources(r, func(ref loom.ResourceRef, size int64, content io.Reader) error {
		hash := sha256.New()
		item := archivedResource{ResourceRef: ref, Size: size}
		read := io.TeeReader(content, hash)
		if isArchive(ref) {
			var err error
			if item.Unusable, item.Odd, err = inner.odd(read); err != nil {
				return badArchive(err, "The archive breaks off, or is broken.")
			}
		}
		if _, err := io.Copy(io.Discard, read); err != nil {
			return badArchive(err, "The archive breaks off, or is broken.")
		}
		item.SHA256 = hex.EncodeToString(hash.Sum(nil))
		found = append(found, item)
		return nil
	})
	return found, err
}
