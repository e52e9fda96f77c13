package web

import (
	"net/http"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/views/apiview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// apiIndex is the readable page of the REST API; anybody may read it, as anybody
// may read the document it is made from.
func (s *Server) apiIndex(w http.ResponseWriter, r *http.Request) error {
	doc, err := readAPIDocument(s.APIDocument)
	if err != nil {
		return err
	}
	m := apiview.IndexModel{Server: s.origin(r), Document: "/v2/openapi.json"}
	for _, tag := range doc.Tags {
		chapter := apiview.Chapter{Name: tag.Name, Help: tag.Description, Href: route.APIChapter(tag.Name)}
		doc.operations(tag.Name, func(method, path string, op apiOperation) {
			chapter.Operations = append(chapter.Operations, apiview.Line{
				Method: method, Path: path, Summary: op.Summary, Href: chapter.Href + "#" + op.OperationID,
			})
		})
		m.Chapters = append(m.Chapters, chapter)
	}
	return s.apiPage(w, r, doc, "REST API", route.API(), apiview.IndexPage(m))
}

// apiChapter shows the operations of one chapter.
func (s *Server) apiChapter(w http.ResponseWriter, r *http.Request) error {
	doc, err := readAPIDocument(s.APIDocument)
	if err != nil {
		return err
	}
	name := route.Segment(r.PathValue("chapter"))
	for _, tag := range doc.Tags {
		if tag.Name != name {
			continue
		}
		m := apiview.ChapterModel{Name: tag.Name, Help: tag.Description}
		used := map[string]bool{}
		doc.operations(tag.Name, func(method, path string, op apiOperation) {
			m.Operations = append(m.Operations, doc.describe(s.origin(r), method, path, op, used))
		})
		m.Shapes = doc.shapes(used)
		return s.apiPage(w, r, doc, tag.Name, route.APIChapter(tag.Name), apiview.ChapterPage(m))
	}
	return loom.NewError(loom.NotFound, "The API has no chapter “%s”.", name)
}

// apiPage puts the content into the frame: with the areas for those who are
// signed in, with the chapters for all.
func (s *Server) apiPage(w http.ResponseWriter, r *http.Request, doc apiDocument, title, here string, content templ.Component) error {
	m := layout.Model{Title: title, Section: "REST API", Here: here, Rail: apiRail(doc, here), Anonymous: true}
	if title != "REST API" {
		m.Crumbs = []ui.Crumb{{Label: "REST API", Href: route.API()}, {Label: title}}
	}
	actor, _, err := s.Sessions.Actor(r)
	switch {
	case err == nil:
		m.Anonymous = false
	case loom.AsError(err).Kind != loom.Unauthenticated:
		return err
	}
	return s.render(w, r, actor, http.StatusOK, m, content)
}

func apiRail(doc apiDocument, here string) []layout.RailItem {
	rail := []layout.RailItem{{Label: "Overview", Icon: "activity", Href: route.API(), Current: here == route.API()}, {Heading: "Chapters"}}
	for _, tag := range doc.Tags {
		href := route.APIChapter(tag.Name)
		rail = append(rail, layout.RailItem{Label: tag.Name, Icon: "box", Href: href, Current: href == here})
	}
	return rail
}
