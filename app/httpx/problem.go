package httpx

import (
	"encoding/json"
	"net/http"

	"loom/app/loom"
)

// apiStatus maps kinds to statuses of the REST API. Old
// clients know 500 but not 503, so Unavailable is 500 on old routes; new ones
// answer through WriteNewProblem.
var apiStatus = map[loom.Kind]int{
	loom.Invalid:         http.StatusBadRequest,
	loom.Unsolvable:      http.StatusBadRequest,
	loom.Unauthenticated: http.StatusUnauthorized,
	loom.Forbidden:       http.StatusForbidden,
	loom.NotFound:        http.StatusNotFound,
	loom.Conflict:        http.StatusConflict,
	loom.Exhausted:       http.StatusConflict,
	loom.Throttled:       http.StatusTooManyRequests,
	loom.Unavailable:     http.StatusInternalServerError,
	loom.Internal:        http.StatusInternalServerError,
}

// pageStatus maps kinds to statuses of pages.
var pageStatus = map[loom.Kind]int{
	loom.Invalid:         http.StatusUnprocessableEntity,
	loom.Unsolvable:      http.StatusUnprocessableEntity,
	loom.Unauthenticated: http.StatusUnauthorized,
	loom.Forbidden:       http.StatusForbidden,
	loom.NotFound:        http.StatusNotFound,
	loom.Conflict:        http.StatusConflict,
	loom.Exhausted:       http.StatusConflict,
	loom.Throttled:       http.StatusTooManyRequests,
	loom.Unavailable:     http.StatusServiceUnavailable,
	loom.Internal:        http.StatusInternalServerError,
}

var titles = map[loom.Kind]string{
	loom.Invalid:         "Invalid request",
	loom.Unsolvable:      "No layout satisfies the constraints",
	loom.Unauthenticated: "Sign-in needed",
	loom.Forbidden:       "Not allowed",
	loom.NotFound:        "Not found",
	loom.Conflict:        "Conflict with the current state",
	loom.Exhausted:       "A quota is used up",
	loom.Throttled:       "Too many tries",
	loom.Unavailable:     "Not available right now",
	loom.Internal:        "Something went wrong",
}

// PageStatus is the status of a page that shows an error of this kind.
func PageStatus(k loom.Kind) int { return pageStatus[k] }

// Title is a heading for an error of this kind.
func Title(k loom.Kind) string { return titles[k] }

// Problem is the body of every error of the REST API (RFC 9457).
type Problem struct {
	Type          string                    `json:"type"`
	Title         string                    `json:"title"`
	Status        int                       `json:"status"`
	Detail        string                    `json:"detail,omitempty"`
	Instance      string                    `json:"instance,omitempty" description:"Id of the request, as in the log."`
	Errors        []loom.FieldError         `json:"errors,omitempty"`
	MissingFields []map[string]MissingField `json:"missingFields,omitempty"`
	Code          string                    `json:"code,omitempty"`
	Reasons       []loom.Reason             `json:"reasons,omitempty"`
	Suggestions   []loom.Suggestion         `json:"suggestions,omitempty"`
	Sizes         *loom.SizeRange           `json:"sizes,omitempty"`
	Preview       loom.PreviewID            `json:"preview,omitempty" description:"Id of a new preview, where the one applied was stale."`
}

// MissingField is a field schema as the missingFields error writes it: with
// defaultValue instead of default.
type MissingField struct {
	Label     string   `json:"label"`
	Type      string   `json:"type"`
	Tip       string   `json:"tip"`
	Default   any      `json:"defaultValue,omitempty"`
	Override  bool     `json:"override"`
	Sensitive bool     `json:"sensitive"`
	Options   []string `json:"options,omitempty"`
}

// NewProblem builds the body for an error.
func NewProblem(r *http.Request, e *loom.Error) Problem {
	p := Problem{
		Type: "urn:loom:error:" + string(e.Kind), Title: titles[e.Kind], Status: apiStatus[e.Kind],
		Detail: e.Message, Instance: RequestID(r), Errors: e.Fields, Preview: e.Preview,
	}
	p.MissingFields = MissingFields(e.Missing)
	if e.Unsat != nil {
		p.Code, p.Reasons, p.Suggestions, p.Sizes = e.Unsat.Code, e.Unsat.Reasons, e.Unsat.Suggestions, e.Unsat.Sizes
	}
	return p
}

// MissingFields returns the absent provider fields of each required set in their
// wire form; nil for none.
func MissingFields(sets []map[string]loom.FieldSchema) []map[string]MissingField {
	var missing []map[string]MissingField
	for _, set := range sets {
		fields := map[string]MissingField{}
		for name, f := range set {
			fields[name] = MissingField{f.Label, f.Type, f.Tip, f.Default, f.Override, f.IsSensitive(), f.Options}
		}
		missing = append(missing, fields)
	}
	return missing
}

// WriteProblem answers with problem+json; it is the error renderer of the API's
// old routes.
func WriteProblem(w http.ResponseWriter, r *http.Request, e *loom.Error) {
	setRetryAfter(w, e)
	SendProblem(w, NewProblem(r, e))
}

// WriteNewProblem is WriteProblem for routes that the predecessor did not have:
// their clients know 503.
func WriteNewProblem(w http.ResponseWriter, r *http.Request, e *loom.Error) {
	p := NewProblem(r, e)
	if e.Kind == loom.Unavailable {
		p.Status = http.StatusServiceUnavailable
	}
	SendProblem(w, p)
}

// SendProblem answers with a problem that is made already, such as one for a
// status that no kind of error has.
func SendProblem(w http.ResponseWriter, p Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	json.NewEncoder(w).Encode(p) //nolint:errcheck // the client is gone
}

// WriteJSON answers 200 with a JSON body.
func WriteJSON(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "no-store")
	}
	_, err = w.Write(append(body, '\n'))
	return err
}
