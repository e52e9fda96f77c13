// Package static embeds the browser files (styles, scripts, icons, vendored
// libraries) and serves them under content-hashed URLs, so that a browser may
// keep them for ever and a new release is picked up at once.
//
// It must not know pages or handlers. A newcomer's trap: a URL typed by hand
// instead of made by URL works until the file changes, and then answers 404.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed css js icons.svg favicon.svg vendor/*.js vendor/LICENSES.txt
var files embed.FS

// Prefix is the path below which Handler expects to be mounted.
const Prefix = "/static/"

// asset is one embedded file, ready to be sent.
type asset struct {
	hash        string
	contentType string
	body        []byte
	// zipped is nil where compression does not help.
	zipped []byte
}

// assets returns the files. Compressing them takes some 50 ms, which a process that
// serves no page, such as the first one of each local machine, does not spend.
var assets = sync.OnceValue(load)

func load() map[string]asset {
	loaded := map[string]asset{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		digest := sha256.Sum256(body)
		a := asset{hash: hex.EncodeToString(digest[:6]), contentType: contentType(name), body: body}
		if zipped := compress(body); len(zipped) < len(body) {
			a.zipped = zipped
		}
		loaded[name] = a
		return nil
	})
	if err != nil {
		// The files are part of the program, so this is a broken build.
		panic(fmt.Sprintf("static: %v", err))
	}
	return loaded
}

func compress(body []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	// Writing to memory cannot fail.
	_, _ = z.Write(body)
	_ = z.Close()
	return b.Bytes()
}

func contentType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "text/plain; charset=utf-8"
}

// URL gives the hashed path of a file, such as "/static/0f3a…/css/loom.css" for
// "css/loom.css". It panics for a file that does not exist: names are constants
// in components, and a golden test renders each of them.
func URL(name string) string {
	a, ok := assets()[name]
	if !ok {
		panic(fmt.Sprintf("static: no file %q", name))
	}
	return Prefix + a.hash + "/" + name
}

// Handler serves the files under Prefix: GET and HEAD only, immutable caching,
// 404 for an unknown file and for a hash that is not that of the file.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "Static files are read with GET.", http.StatusMethodNotAllowed)
			return
		}
		hash, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, Prefix), "/")
		a, ok := assets()[name]
		if !ok || hash != a.hash {
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, "There is no such file; reload the page that names it.", http.StatusNotFound)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.contentType)
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("X-Content-Type-Options", "nosniff")
		body := a.body
		if a.zipped != nil {
			h.Set("Vary", "Accept-Encoding")
			if AcceptsGzip(r.Header.Get("Accept-Encoding")) {
				h.Set("Content-Encoding", "gzip")
				body = a.zipped
			}
		}
		h.Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(http.StatusOK)
		if r.Method == http.MethodGet {
			// The client may be gone; there is nobody left to tell.
			_, _ = w.Write(body)
		}
	})
}

// AcceptsGzip reports whether an Accept-Encoding header takes gzip.
func AcceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		coding, quality, _ := strings.Cut(part, ";")
		if strings.TrimSpace(coding) != "gzip" {
			continue
		}
		_, q, found := strings.Cut(quality, "=")
		value, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
		return !found || err != nil || value > 0
	}
	return false
}
