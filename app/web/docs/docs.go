package docs

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/apiview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// apiOrigin stands for Loom's address in what is kept of the API pages.
const apiOrigin = "http://loom.invalid"

// apiZippedMost is how many bytes of compressed API pages are kept, some 20 KB each: readers
// choose the theme, and where no public address is known the address.
const apiZippedMost = 8 << 20

// apiPages keeps what is made of the API's document. Anybody may read it, so it is made once.
type apiPages struct {
	once sync.Once
	err  error
	tags []string
	// pages are the contents by the name of their chapter, "" for the overview, with apiOrigin.
	pages map[string]apiContent

	mu     sync.Mutex
	zipped map[apiKey][]byte
	size   int // of them
}

// apiContent is a component that is rendered already.
type apiContent []byte

type apiKey struct {
	chapter, origin string
	theme           layout.Theme
	fragment        bool
}

// Render writes it.
func (c apiContent) Render(_ context.Context, w io.Writer) error {
	_, err := w.Write(c)
	return err
}

// at is the content for an address of Loom.
func (c apiContent) at(origin string) apiContent {
	return bytes.ReplaceAll(c, []byte(apiOrigin), []byte(templ.EscapeString(origin)))
}

// read makes the contents, the first time.
func (p *apiPages) read(document []byte) error {
	p.once.Do(func() { p.err = p.make(document) })
	return p.err
}

func (p *apiPages) make(document []byte) error {
	doc, err := readAPIDocument(document)
	if err != nil {
		return err
	}
	p.pages, p.zipped = map[string]apiContent{}, map[apiKey][]byte{}
	render := func(name string, content templ.Component) error {
		var b bytes.Buffer
		err := content.Render(context.Background(), &b)
		p.pages[name] = b.Bytes()
		return err
	}
	index := apiview.IndexModel{Server: apiOrigin, Document: "/v2/openapi.json"}
	for _, tag := range doc.Tags {
		p.tags = append(p.tags, tag.Name)
		chapter := apiview.Chapter{Name: tag.Name, Help: tag.Description, Href: route.APIChapter(tag.Name)}
		m := apiview.ChapterModel{Name: tag.Name, Help: tag.Description}
		used := map[string]bool{}
		doc.operations(tag.Name, func(method, path string, op apiOperation) {
			chapter.Operations = append(chapter.Operations, apiview.Line{
				Method: method, Path: path, Summary: op.Summary, Href: chapter.Href + "#" + op.OperationID,
			})
			m.Operations = append(m.Operations, doc.describe(apiOrigin, method, path, op, used))
		})
		m.Shapes = doc.shapes(used)
		index.Chapters = append(index.Chapters, chapter)
		if err := render(tag.Name, apiview.ChapterPage(m)); err != nil {
			return err
		}
	}
	return render("", apiview.IndexPage(index))
}

// compressed gives a page as it was compressed before, else what zip makes.
func (p *apiPages) compressed(key apiKey, zip func() ([]byte, error)) ([]byte, error) {
	p.mu.Lock()
	found := p.zipped[key]
	p.mu.Unlock()
	if found != nil {
		return found, nil
	}
	made, err := zip()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size += len(made); p.size > apiZippedMost {
		clear(p.zipped)
		p.size = len(made)
	}
	p.zipped[key] = made
	return made, nil
}

// apiIndex is the readable page of the REST API; anybody may read it, as anybody
// may read the document it is made from.
func (s *Server) apiIndex(w http.ResponseWriter, r *http.Request) error {
	return s.apiPage(w, r, "")
}

// apiChapter shows the operations of one chapter.
func (s *Server) apiChapter(w http.ResponseWriter, r *http.Request) error {
	return s.apiPage(w, r, route.Segment(r.PathValue("chapter")))
}

// apiPage puts the content into the frame: with the areas for those who are
// signed in, with the chapters for all.
func (s *Server) apiPage(w http.ResponseWriter, r *http.Request, chapter string) error {
	if err := s.api.read(s.APIDocument); err != nil {
		return err
	}
	kept, ok := s.api.pages[chapter]
	if !ok {
		return loom.NewError(loom.NotFound, "The API has no chapter “%.100s”.", chapter)
	}
	title, here := "REST API", route.API()
	m := layout.Model{Section: "REST API", Anonymous: true}
	if chapter != "" {
		title, here = chapter, route.APIChapter(chapter)
		m.Crumbs = []ui.Crumb{{Label: "REST API", Href: route.API()}, {Label: title}}
	}
	m.Title, m.Here, m.Rail = title, here, apiRail(s.api.tags, here)
	origin := s.Origin(r)
	actor, _, err := s.Sessions.Actor(r)
	switch {
	case err == nil:
		m.Anonymous = false
		return s.Render(w, r, actor, http.StatusOK, m, kept.at(origin))
	case loom.AsError(err).Kind != loom.Unauthenticated:
		return err
	}
	plain := *r
	plain.URL = &url.URL{Path: here} // the page is the same whatever else was asked
	if !httpx.TakesGzip(r) {
		return s.Render(w, &plain, actor, http.StatusOK, m, kept.at(origin))
	}
	key := apiKey{chapter, origin, page.Theme(r), httpx.IsFragment(r)}
	body, err := s.api.compressed(key, func() ([]byte, error) {
		page, err := s.Framed(w, &plain, actor, m, kept.at(origin))
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		err = page.Render(context.WithoutCancel(r.Context()), &b)
		return httpx.Gzipped(b.Bytes()), err
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Encoding", "gzip")
	return httpx.Render(w, r, http.StatusOK, apiContent(body))
}

func apiRail(tags []string, here string) []layout.RailItem {
	rail := []layout.RailItem{{Label: "Overview", Icon: "activity", Href: route.API(), Current: here == route.API()}, {Heading: "Chapters"}}
	for _, tag := range tags {
		href := route.APIChapter(tag)
		rail = append(rail, layout.RailItem{Label: tag, Icon: "box", Href: href, Current: href == here})
	}
	return rail
}
