package page

import (
	"net/http"
	"net/url"

	"loom/app/httpx"
	"loom/views/route"
	"loom/views/ui"
)

// here is the address of the page that the viewer looks at, "" where that is not known.
func here(r *http.Request) string {
	switch u, err := url.Parse(r.Header.Get("HX-Current-URL")); {
	case httpx.IsFragment(r) && err == nil && u.Path != "":
		return route.Local(u.RequestURI(), "")
	case r.Method == http.MethodGet && !httpx.IsFragment(r):
		return route.Local(r.URL.RequestURI(), "")
	}
	return route.Local(r.PostForm.Get(ui.FieldFrom), "")
}

// From is the address of the page that a question was opened from: of a dialog the page
// below it, else the one before. "" where that is not known.
func From(r *http.Request) string {
	if r.Method != http.MethodGet || httpx.IsFragment(r) {
		return here(r)
	}
	u, err := url.Parse(r.Referer())
	if err != nil || u.Host != r.Host || u.Path == r.URL.Path {
		return ""
	}
	return route.Local(u.RequestURI(), "")
}

// placed tells components when the page is made, and where the viewer is for their forms.
func (s *Shared) placed(r *http.Request) *http.Request {
	see := ui.ViewerOf(r.Context())
	see.Now, see.Here, see.From = s.Now(), here(r), From(r)
	return r.WithContext(ui.WithViewer(r.Context(), see))
}

// Back is the page that a form was sent from, as it says, else another one.
func Back(w http.ResponseWriter, r *http.Request, otherwise string) (string, error) {
	form, err := ReadForm(w, r)
	return route.Local(form.Get(ui.FieldFrom), otherwise), err
}

// Return keeps a message for the next page and goes Back.
func (s *Shared) Return(w http.ResponseWriter, r *http.Request, otherwise string, flash httpx.Flash) error {
	back, err := Back(w, r, otherwise)
	if err != nil {
		return err
	}
	return s.Say(w, r, back, flash)
}
