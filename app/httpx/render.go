package httpx

import (
	"bytes"
	"net/http"

	"github.com/a-h/templ"
)

// Render answers with a component. It is rendered to memory first, so that an
// error while rendering still becomes an error page.
func Render(w http.ResponseWriter, r *http.Request, status int, c templ.Component) error {
	var b bytes.Buffer
	if err := c.Render(r.Context(), &b); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Add("Vary", "HX-Request")
	w.WriteHeader(status)
	_, err := w.Write(b.Bytes())
	return err
}
