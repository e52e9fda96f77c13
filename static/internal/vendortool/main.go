// Command vendortool fetches the browser files named in static/vendor/vendor.json
// with "npm pack", verifies them and builds the icon sprite. It must not choose
// versions: a new one is an edit of vendor.json, reviewed like code.
//
// Usage, from the root of the module:
//
//	vendortool fetch         fetch and write; fails when a checksum differs
//	vendortool fetch -lock   fetch, write, and record the checksums found
//
// The checksums of what is committed are verified by the tests of package static.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const root = "static"

// lock is the shape of vendor.json.
type lock struct {
	Files  []file `json:"files"`
	Sprite sprite `json:"sprite"`
}

type file struct {
	Package string `json:"package"`
	Version string `json:"version"`
	Licence string `json:"licence"`
	Origin  string `json:"origin"`
	Member  string `json:"member"`
	File    string `json:"file"`
	SHA256  string `json:"sha256"`
}

type sprite struct {
	Package string `json:"package"`
	Version string `json:"version"`
	Licence string `json:"licence"`
	Origin  string `json:"origin"`
	File    string `json:"file"`
	SHA256  string `json:"sha256"`
	// Icons maps our names to those of the package.
	Icons map[string]string `json:"icons"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "vendortool:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 || args[0] != "fetch" || len(args) > 2 || (len(args) == 2 && args[1] != "-lock") {
		return errors.New("usage: vendortool fetch [-lock]")
	}
	relock := len(args) == 2
	lockPath := filepath.Join(root, "vendor", "vendor.json")
	text, err := os.ReadFile(lockPath)
	if err != nil {
		return fmt.Errorf("%w (run this from the root of the module)", err)
	}
	var l lock
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("%s: %w", lockPath, err)
	}
	tmp, err := os.MkdirTemp("", "loom-vendor-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)

	var licences strings.Builder
	licences.WriteString("Licences of the files in this folder and of ../icons.svg.\n")
	for i := range l.Files {
		f := &l.Files[i]
		members, err := pack(tmp, f.Package, f.Version)
		if err != nil {
			return err
		}
		if err := place(f.File, members[f.Member], &f.SHA256, relock); err != nil {
			return err
		}
		if i == 0 || l.Files[i-1].Package != f.Package {
			licence(&licences, f.Package, f.Version, f.Licence, members["LICENSE"])
		}
	}
	members, err := pack(tmp, l.Sprite.Package, l.Sprite.Version)
	if err != nil {
		return err
	}
	body, err := drawSprite(l.Sprite, members)
	if err != nil {
		return err
	}
	if err := place(l.Sprite.File, body, &l.Sprite.SHA256, relock); err != nil {
		return err
	}
	licence(&licences, l.Sprite.Package, l.Sprite.Version, l.Sprite.Licence, members["LICENSE"])
	if err := os.WriteFile(filepath.Join(root, "vendor", "LICENSES.txt"), []byte(licences.String()), 0o644); err != nil {
		return err
	}
	if !relock {
		return nil
	}
	out, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(lockPath, append(out, '\n'), 0o644)
}

// pack fetches an exact version and returns the members of its archive by
// their path below the package's folder.
func pack(dir, name, version string) (map[string][]byte, error) {
	cmd := exec.Command("npm", "pack", "--silent", name+"@"+version)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("npm pack %s@%s: %w", name, version, err)
	}
	f, err := os.Open(filepath.Join(dir, strings.TrimSpace(string(out))))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	members := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return members, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		body, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		_, path, _ := strings.Cut(h.Name, "/")
		members[path] = body
	}
}

// place writes a file below static after comparing its checksum with *sum;
// with relock it records the checksum instead.
func place(name string, body []byte, sum *string, relock bool) error {
	if len(body) == 0 {
		return fmt.Errorf("%s: the package does not hold it; look at \"member\" in vendor.json", name)
	}
	digest := sha256.Sum256(body)
	got := hex.EncodeToString(digest[:])
	if relock {
		*sum = got
	}
	if got != *sum {
		return fmt.Errorf("%s: checksum is %s, vendor.json says %s; nothing was written", name, got, *sum)
	}
	return os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), body, 0o644)
}

var (
	svgBody = regexp.MustCompile(`(?s)<svg[^>]*>(.*)</svg>`)
	spaces  = regexp.MustCompile(`\s*\n\s*`)
)

// drawSprite joins the chosen icons into one file of symbols, in name order.
// Stroke and fill come from the stylesheet, since symbols inherit from their use.
func drawSprite(s sprite, members map[string][]byte) ([]byte, error) {
	var names []string
	for name := range s.Icons {
		names = append(names, name)
	}
	slices.Sort(names)
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- Icons from %s %s; licences in vendor/LICENSES.txt. Symbol loom is ours. -->\n", s.Package, s.Version)
	b.WriteString("<svg xmlns=\"http://www.w3.org/2000/svg\">\n")
	b.WriteString(`<symbol id="loom" viewBox="0 0 24 24"><path d="M3 7h4m4 0h10M3 12h10m4 0h4M3 17h4m4 0h10M9 3v10m0 4v4M15 3v6m0 4v8"/></symbol>` + "\n")
	for _, name := range names {
		m := svgBody.FindSubmatch(members["icons/"+s.Icons[name]+".svg"])
		if m == nil {
			return nil, fmt.Errorf("icon %s: %s has no %q", name, s.Package, s.Icons[name])
		}
		fmt.Fprintf(&b, "<symbol id=%q viewBox=\"0 0 24 24\">%s</symbol>\n", name, spaces.ReplaceAll(bytes.TrimSpace(m[1]), nil))
	}
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

func licence(b *strings.Builder, name, version, kind string, text []byte) {
	fmt.Fprintf(b, "\n==== %s %s (%s) ====\n\n%s\n", name, version, kind, strings.TrimSpace(string(text)))
}
