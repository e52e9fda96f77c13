package page

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"loom/app/httpx"
	"loom/app/loom"
)

var nextLink = regexp.MustCompile(`<([^>]+)>; rel="next"`)

// eachPage gives the items of all pages of a list, as the API answers them, a page at a
// time. each may stop it by an error.
func (s *Shared) eachPage(r *http.Request, actor loom.Actor, d Document, each func(items []json.RawMessage) error) error {
	u, err := url.Parse(s.target(r, actor, d, true))
	if err != nil {
		return err
	}
	q := u.Query()
	q.Set("limit", strconv.Itoa(exportRows))
	target := withQuery(u.EscapedPath(), q)
	for target != "" {
		answer, err := s.askAPI(r, target)
		if err != nil {
			return err
		}
		var items []json.RawMessage
		if err := json.Unmarshal(answer.body.Bytes(), &items); err != nil {
			return loom.NewError(loom.Internal, "The list could not be read.")
		}
		if err := each(items); err != nil {
			return err
		}
		next := nextLink.FindStringSubmatch(answer.header.Get("Link"))
		target = ""
		if next != nil && len(items) > 0 {
			target = next[1]
		}
	}
	return nil
}

// fileName is what a list is called as a file: "clusters-2026-06-12.csv".
func fileName(r *http.Request, now time.Time, ending string) string {
	parts := strings.FieldsFunc(r.URL.Path, func(c rune) bool { return c == '/' })
	return strings.Join(parts, "-") + "-" + now.UTC().Format(time.DateOnly) + ending
}

// began says that a file has been begun: later errors can only cut it short.
type began struct {
	w    http.ResponseWriter
	done bool
}

func (b *began) begin(media, name string) {
	if b.done {
		return
	}
	b.done = true
	b.w.Header().Set("Content-Type", media)
	b.w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	b.w.WriteHeader(http.StatusOK)
}

// fail gives the error while nothing was sent; afterwards it breaks the connection off,
// so that nobody takes half of a file for all of it.
func (b *began) fail(s *Shared, r *http.Request, err error) error {
	if err == nil || !b.done {
		return err
	}
	s.Log.Error("an export was cut short", "request_id", httpx.RequestID(r), "error", err.Error())
	panic(http.ErrAbortHandler)
}

// exportJSON sends all rows of a list as one array, page by page.
func (s *Shared) exportJSON(w http.ResponseWriter, r *http.Request, actor loom.Actor, d Document) error {
	file, first := &began{w: w}, true
	err := s.eachPage(r, actor, d, func(items []json.RawMessage) error {
		file.begin("application/json", fileName(r, s.Now(), ".json"))
		var b bytes.Buffer
		for _, item := range items {
			if first {
				b.WriteString("[\n")
			} else {
				b.WriteString(",\n")
			}
			first = false
			b.Write(item)
		}
		_, err := w.Write(b.Bytes())
		return err
	})
	if err != nil {
		return file.fail(s, r, err)
	}
	end := "\n]\n"
	if first {
		end = "[]\n"
	}
	_, err = w.Write([]byte(end))
	return err
}

// exportCSV sends all rows of a list for spreadsheets, page by page.
func (s *Shared) exportCSV(w http.ResponseWriter, r *http.Request, actor loom.Actor, d Document) error {
	file, first := &began{w: w}, true
	sheet := csv.NewWriter(w)
	err := s.eachPage(r, actor, d, func(items []json.RawMessage) error {
		file.begin("text/csv; charset=utf-8", fileName(r, s.Now(), ".csv"))
		row := make([]string, len(d.Columns))
		if first {
			for i, column := range d.Columns {
				row[i], _, _ = strings.Cut(column, "=")
			}
			if err := sheet.Write(row); err != nil {
				return err
			}
			first = false
		}
		for _, item := range items {
			tree := ParseTree(item)
			for i, column := range d.Columns {
				_, path, _ := strings.Cut(column, "=")
				row[i] = csvCell(tree, path)
			}
			if err := sheet.Write(row); err != nil {
				return err
			}
		}
		sheet.Flush()
		return sheet.Error()
	})
	return file.fail(s, r, err)
}

// csvCell finds a member of a row; "@" before it says that it is a time.
func csvCell(tree any, path string) string {
	path, isTime := strings.CutPrefix(path, "@")
	for name := range strings.SplitSeq(path, ".") {
		object, ok := tree.(map[string]any)
		if !ok {
			return ""
		}
		tree = object[name]
	}
	switch v := tree.(type) {
	case nil:
		return ""
	case string:
		return plainCell(v)
	case json.Number:
		if millis, err := v.Int64(); isTime && err == nil {
			if millis == 0 {
				return ""
			}
			return time.UnixMilli(millis).UTC().Format(time.RFC3339)
		}
		return v.String()
	}
	return plainCell(CompactJSON(tree))
}

// plainCell keeps a text from being read as a formula by a spreadsheet.
func plainCell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
