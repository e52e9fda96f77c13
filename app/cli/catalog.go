package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/wiring"
)

// Limits of a folder with a catalog, and of what is asked about it.
const (
	maxFolderEntries = 1000
	maxFolderFile    = 256 << 10
	maxFolderBytes   = 8 << 20
	maxPlanAnswer    = 1 << 20
	planPatience     = 2 * time.Minute
)

// catalogCmd is for catalogs that are kept in folders.
type catalogCmd struct {
	Plan catalogPlan `cmd:"" help:"Print what an import of a folder would do to clusters, as Markdown. LOOM_URL and LOOM_TOKEN name the server and a token of an administrator. Exit status 2 if entries are invalid, 3 for --fail-on."`
}

type catalogPlan struct {
	Dir    string `arg:"" help:"Folder with a catalog: files such as services/nginx.json."`
	FailOn string `enum:"invalid,impossible,replace,restart" default:"invalid" placeholder:"EFFECT" help:"Exit status 3 for this effect or a stronger one: restart, replace, impossible. Clusters that no change can begin on now don't count [invalid: for none]."`
}

// Run asks the server and prints its answer. It opens no database.
func (c *catalogPlan) Run(ctx context.Context, e *wiring.Environment, environ variables) error {
	base, token := environ.get("LOOM_URL"), environ.get("LOOM_TOKEN")
	switch {
	case base == "":
		return errors.New("LOOM_URL is not set. Set it to the URL of Loom, such as http://127.0.0.1:8080")
	case token == "":
		return errors.New("LOOM_TOKEN is not set. Set it to an API token of an administrator")
	}
	body, err := packFolder(c.Dir)
	if err != nil {
		return err
	}
	text, header, err := planImport(ctx, base, token, body)
	if err != nil {
		return err
	}
	if _, err := e.Out.Write(text); err != nil {
		return err
	}
	return c.verdict(header)
}

// verdict is the exit status for what the server says of an import.
func (c *catalogPlan) verdict(header http.Header) error {
	invalid, err := strconv.Atoi(header.Get(httpx.HeaderInvalid))
	effect := clusters.Effect(header.Get(httpx.HeaderEffect))
	switch {
	case err != nil || !slices.Contains(clusters.Effects, effect):
		return errors.New("the server's answer names no effect. Is LOOM_URL the URL of Loom, of this release?")
	case invalid == 1:
		return &exitStatus{exitUsage, errors.New("1 entry is invalid")}
	case invalid > 1:
		return &exitStatus{exitUsage, fmt.Errorf("%d entries are invalid", invalid)}
	}
	limit := slices.Index(clusters.Effects, clusters.Effect(c.FailOn))
	if limit >= 0 && slices.Index(clusters.Effects, effect) >= limit {
		return &exitStatus{exitNo, fmt.Errorf("the strongest effect is “%s” (--fail-on %s)", effect, c.FailOn)}
	}
	return nil
}

// planImport asks what an import would do.
func planImport(ctx context.Context, base, token string, body []byte) ([]byte, http.Header, error) {
	to, err := url.Parse(base)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return nil, nil, errors.New("LOOM_URL is no URL such as http://127.0.0.1:8080")
	}
	to = to.JoinPath("/v2/import")
	to.RawQuery = "mode=merge&dryRun=true&fleet=true"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/gzip")
	request.Header.Set("Accept", "text/markdown")
	client := http.Client{Timeout: planPatience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		return nil, nil, fmt.Errorf("reach Loom: %w", err)
	}
	defer answer.Body.Close() //nolint:errcheck // read to the end or given up
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxPlanAnswer+1))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("the answer of Loom broke off: %w", err)
	case answer.StatusCode != http.StatusOK:
		return nil, nil, refusedImport(answer.StatusCode, text)
	case len(text) > maxPlanAnswer:
		return nil, nil, fmt.Errorf("the server's answer is larger than %d MiB", maxPlanAnswer>>20)
	}
	return text, answer.Header, nil
}

// refusedImport says what the server said, invalid content with a status of its own.
func refusedImport(status int, body []byte) error {
	var p httpx.Problem
	if err := json.Unmarshal(body, &p); err != nil || p.Detail == "" {
		p.Detail = http.StatusText(status)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Loom refused with status %d: %s", status, p.Detail)
	for _, f := range p.Errors {
		fmt.Fprintf(&b, "\n  %s: %s", f.Field, f.Message)
	}
	if status == http.StatusBadRequest {
		return &exitStatus{exitUsage, errors.New(b.String())}
	}
	return errors.New(b.String())
}

// packFolder packs the files of a folder with a catalog. Links are refused, not followed.
func packFolder(dir string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder: %w", err)
	}
	defer root.Close() //nolint:errcheck // only read from
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	p := packing{root: root, files: tar.NewWriter(packed)}
	for _, kind := range loom.TenantKinds {
		if err := p.kind(string(kind)); err != nil {
			return nil, err
		}
	}
	if p.kinds == 0 {
		return nil, fmt.Errorf("%s holds no folder of a catalog, such as %s", dir, loom.KindService)
	}
	err = errors.Join(p.files.Close(), packed.Close())
	return out.Bytes(), err
}

// packing packs a folder into a tar.
type packing struct {
	root                  *os.Root
	files                 *tar.Writer
	kinds, entries, bytes int
}

// kind packs the entries of a kind, if there is a folder for it.
func (p *packing) kind(folder string) error {
	info, err := p.root.Lstat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return invalidFile("%s is no plain folder. Links are not followed", folder)
	}
	p.kinds++
	found, err := fs.ReadDir(p.root.FS(), folder)
	if err != nil {
		return err
	}
	if err := p.files.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755}); err != nil {
		return err
	}
	for _, file := range found {
		if name := path.Join(folder, file.Name()); strings.HasSuffix(name, ".json") && !file.IsDir() {
			if err := p.file(name, file); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *packing) file(name string, entry fs.DirEntry) error {
	if !entry.Type().IsRegular() {
		return invalidFile("%s is no plain file. Links are not followed", name)
	}
	if p.entries++; p.entries > maxFolderEntries {
		return invalidFile("the folder holds more than %d entries", maxFolderEntries)
	}
	file, err := p.root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read from
	content, err := io.ReadAll(io.LimitReader(file, maxFolderFile+1))
	if err != nil {
		return err
	}
	if len(content) > maxFolderFile {
		return invalidFile("%s is larger than %d KiB", name, maxFolderFile>>10)
	}
	if p.bytes += len(content); p.bytes > maxFolderBytes {
		return invalidFile("the entries of the folder are larger than %d MiB together", maxFolderBytes>>20)
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}
	if err := p.files.WriteHeader(header); err != nil {
		return err
	}
	_, err = p.files.Write(content)
	return err
}

func invalidFile(format string, args ...any) error {
	return &exitStatus{exitUsage, fmt.Errorf(format, args...)}
}
