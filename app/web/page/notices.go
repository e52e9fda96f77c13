package page

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/account"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

const (
	// hiddenCookie keeps which banners were closed.
	hiddenCookie = "loom-hidden"
	// hiddenAge is how long a banner stays closed, in seconds.
	hiddenAge = 24 * 3600
)

// notices fills in what pages tell without being asked. What cannot be read is left
// out: a page is not worth less for it, and the log has it.
func (s *Shared) notices(r *http.Request, actor loom.Actor, m *layout.Model) {
	if s.Accounts == nil || actor.Tenant == "" {
		return
	}
	found, err := s.Accounts.Notices(r.Context(), actor)
	if err != nil {
		s.Log.Warn("notices are left out", "request_id", httpx.RequestID(r), "error", err.Error())
		return
	}
	banners := noticeBanners(found, actor, s.Now())
	if _, session, err := s.Sessions.Actor(r); err == nil { // read once per request
		if b, ask := passwordNotice(actor, session); ask {
			banners = append(banners, b)
		}
	}
	hidden := hiddenBanners(r)
	for _, b := range banners {
		if !slices.Contains(hidden, b.Key) {
			b.Return = m.Path
			m.Banners = append(m.Banners, b)
		}
	}
}

func noticeBanners(n account.Notices, actor loom.Actor, now time.Time) []ui.BannerModel {
	var out []ui.BannerModel
	ask := " Ask a superadmin for more, or delete what is not needed."
	if n.ClustersFull {
		out = append(out, ui.BannerModel{Key: "clusters", Tone: ui.ToneWarn, Text: "The quota of " + ui.Count(n.MaxClusters, "cluster", "clusters") + " is used up." + ask,
			Action: "Your clusters", ActionHref: route.Clusters()})
	}
	if n.NodesFull {
		out = append(out, ui.BannerModel{Key: "nodes", Tone: ui.ToneWarn, Text: "The quota of " + ui.Count(n.MaxNodes, "node", "nodes") + " is used up." + ask,
			Action: "Your clusters", ActionHref: route.Clusters()})
	}
	if n.Workers == 0 && actor.Tenant != loom.SuperTenant {
		b := ui.BannerModel{Key: "workers", Tone: ui.ToneWarn, Text: "This tenant has no workers, so nothing that is begun would run. Ask a superadmin to give it some."}
		if actor.May(loom.Install, loom.Installation) == nil {
			b.Action, b.ActionHref = "Give it workers", route.SystemTenantTab(actor.TenantName, "edit")
		}
		out = append(out, b)
	}
	if n.Outstanding > 0 {
		out = append(out, ui.BannerModel{Key: "sync" + strconv.Itoa(n.Outstanding), Tone: ui.ToneRun, Text: ui.Count(n.Outstanding, "file waits", "files wait") + " for the next release.",
			Action: "Files", ActionHref: route.AdminResources()})
	}
	if n.Expiring > 0 {
		text := "Your token “" + n.Token + "” expires " + ui.Relative(n.TokenEnd, now) + "."
		if n.Expiring > 1 {
			text = ui.Count(n.Expiring, "token", "tokens") + " of yours expire within 7 days, “" + n.Token + "” " + ui.Relative(n.TokenEnd, now) + "."
		}
		out = append(out, ui.BannerModel{Key: "token" + strconv.FormatInt(n.TokenEnd.Unix(), 36), Tone: ui.ToneWarn, Text: text, Action: "API tokens", ActionHref: route.AccountTokens()})
	}
	return out
}

func hiddenBanners(r *http.Request) []string {
	c, err := r.Cookie(hiddenCookie)
	if err != nil {
		return nil
	}
	return strings.Split(c.Value, ".")
}

// bannerHide closes a banner for a day in this browser.
func (s *Shared) bannerHide(w http.ResponseWriter, r *http.Request, _ loom.Actor) error {
	f, err := ReadForm(w, r)
	if err != nil {
		return err
	}
	keys := hiddenBanners(r)
	key := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return -1
	}, f.Get("key"))
	if key != "" && !slices.Contains(keys, key) && len(key) < 40 {
		keys = append(keys, key)
	}
	if len(keys) > 20 {
		keys = keys[len(keys)-20:]
	}
	http.SetCookie(w, &http.Cookie{
		Name: hiddenCookie, Value: strings.Trim(strings.Join(keys, "."), "."), Path: "/", MaxAge: hiddenAge, SameSite: http.SameSiteLaxMode, HttpOnly: true, Secure: r.TLS != nil,
	})
	if httpx.IsFragment(r) {
		w.WriteHeader(http.StatusOK) // the banner's place stays empty
		return nil
	}
	return httpx.SeeOther(w, r, route.Local(f.Get("next"), route.Home()))
}
