package clusters

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/route"
)

// createDraft names the draft of the form for a new cluster; a user has one.
const createDraft = "cluster/new"

// keepCreateDraft keeps the form for a new cluster as it was sent, without what is
// secret. That it cannot be kept stops nobody from going on.
func (s *Server) keepCreateDraft(r *http.Request, actor loom.Actor, st *settled, v url.Values) {
	kept, secret := url.Values{}, map[string]bool{}
	declared := st.settings()
	for i := range declared {
		secret[settingPrefix+declared[i].Key] = declared[i].Secret
	}
	for name, values := range v {
		field, isField := strings.CutPrefix(name, fieldPrefix)
		if isField && (st.facts == nil || loom.LooksSecret(field) || st.facts.ProviderFields[field].IsSensitive()) || name == "do" || name == "suggest" {
			continue
		}
		if hidden, isSetting := secret[name]; strings.HasPrefix(name, settingPrefix) && (hidden || !isSetting) {
			continue
		}
		kept[name] = values
	}
	if config, problem := parseConfig(v.Get("config")); problem == "" {
		kept.Set("config", configText(withoutTyped(config, declared)))
	}
	if err := s.Accounts.SaveDraft(r.Context(), actor, createDraft, kept); err != nil && !errors.Is(err, loom.Invalid) {
		s.Log.Error("a draft could not be kept", "request_id", httpx.RequestID(r), "error", err.Error())
	}
}

// restoreCreateDraft is the form for a new cluster that the actor did not send off,
// and when it was kept; the zero time without one.
func (s *Server) restoreCreateDraft(r *http.Request, actor loom.Actor) (createForm, time.Time) {
	kept, err := s.Accounts.Draft(r.Context(), actor, createDraft)
	if err != nil {
		if !errors.Is(err, loom.NotFound) {
			s.Log.Error("a draft could not be read", "request_id", httpx.RequestID(r), "error", err.Error())
		}
		return createForm{}, time.Time{}
	}
	return readCreateForm(kept.Values), kept.Saved
}

// clusterNewDiscard forgets the draft and begins anew.
func (s *Server) clusterNewDiscard(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := s.Accounts.DropDraft(r.Context(), actor, createDraft); err != nil {
		return err
	}
	return httpx.SeeOther(w, r, route.ClusterNew())
}
