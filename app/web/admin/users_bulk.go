package admin

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/sharedview"
	"loom/views/ui"
)

// maxBulkUsers is how many users are disabled at once.
const maxBulkUsers = 200

// whyStaysEnabled says why a user is not disabled together with others, "" if it can be.
func whyStaysEnabled(actor loom.Actor, u loom.UserSummary) string {
	switch {
	case u.ID == actor.User:
		return "You can't disable yourself."
	case u.ID == loom.AdminUser:
		return "The built-in administrator stays enabled."
	case u.Disabled:
		return "Disabled already."
	}
	return ""
}

// chosenUsers reads the users that were selected, each once; those who are gone are left out.
func (s *Server) chosenUsers(r *http.Request, actor loom.Actor, ids []string) (users []loom.UserSummary, err error) {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for _, id := range ids[:min(len(ids), maxBulkUsers)] {
		u, err := s.Accounts.UserSummary(r.Context(), actor, loom.UserID(id))
		if errors.Is(err, loom.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		users = append(users, u)
	}
	return users, nil
}

// usersBack is the list with the filters that are among the values.
func usersBack(v url.Values) string {
	if back := v.Get("back"); back != "" {
		return route.Local(back, route.AdminUsers())
	}
	return route.Query(route.AdminUsers(), readUserQuery(v).pairs()...)
}

func userBulkFrame() layout.Model {
	m := page.AdminFrame("Disable users", route.AdminUsers(), ui.Crumb{Label: "Admin", Href: route.Admin()}, ui.Crumb{Label: "Users", Href: route.AdminUsers()}, ui.Crumb{Label: "Disable"})
	m.Section = "Users"
	return m
}

// usersDisableAsk shows which users would be disabled, and who stays and why.
func (s *Server) usersDisableAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v := r.URL.Query()
	users, err := s.chosenUsers(r, actor, v["id"])
	if err != nil {
		return err
	}
	m := sharedview.BulkModel{Noun: "user", Action: route.AdminUsersDisable(), Title: "Disable users", Back: usersBack(v),
		Intro:   "They are signed out everywhere, their API tokens are revoked, and they can't sign in. Clusters stay unchanged.",
		Columns: []ui.Column{{Label: "User"}, {Label: "Role"}, {Label: "Clusters", Numeric: true}, {Label: "API tokens", Numeric: true}}}
	n := 0
	for _, u := range users {
		row := sharedview.BulkRow{Key: string(u.ID), Name: string(u.ID), Href: route.AdminUser(u.ID), State: ui.State{Word: page.Capital(string(u.Role)), Icon: "user", Tone: ui.ToneIdle},
			Cells: []string{strconv.Itoa(u.Clusters), strconv.Itoa(u.Tokens)}, WhyNot: whyStaysEnabled(actor, u)}
		if row.WhyNot != "" {
			row.Key = ""
		} else {
			n++
		}
		m.Rows = append(m.Rows, row)
	}
	if len(users) == 0 {
		m.Nothing = "Nothing is selected. Tick some rows in the list first."
	}
	m.Button = ui.ButtonModel{Label: "Disable " + ui.Count(n, "user", "users"), Busy: "Disabling…", Kind: ui.DangerFilled, Submit: true}
	return s.Render(w, r, actor, http.StatusOK, userBulkFrame(), sharedview.BulkPage(m))
}

// usersDisable disables the users one by one, and says of each what came of it.
func (s *Server) usersDisable(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	users, err := s.chosenUsers(r, actor, v["id"])
	if err != nil {
		return err
	}
	m := sharedview.DoneModel{Noun: "user", Title: "Disable users", Back: usersBack(v), Summary: ui.BannerModel{Tone: ui.ToneOK}}
	done, disabled := 0, true
	for _, u := range users {
		row := sharedview.DoneRow{Name: string(u.ID), Href: route.AdminUser(u.ID), Text: whyStaysEnabled(actor, u)}
		if row.Text == "" {
			_, err := s.Accounts.UpdateUser(r.Context(), actor, u.ID, account.UserChange{Disabled: &disabled})
			_, _, refused := page.Refused(err)
			switch {
			case err == nil:
				row.OK, row.Text = true, "Disabled."
				done++
			case refused || errors.Is(err, loom.NotFound):
				row.Text = loom.AsError(err).Message
			default:
				return err
			}
		}
		m.Rows = append(m.Rows, row)
	}
	m.Summary.Text = "Disabled " + ui.Count(done, "user", "users") + "."
	if failed := len(m.Rows) - done; failed > 0 {
		m.Summary.Tone = ui.ToneWarn
		m.Summary.Text += " Not done: " + strconv.Itoa(failed) + "."
	}
	return s.Render(w, r, actor, http.StatusOK, userBulkFrame(), sharedview.BulkDonePage(m))
}
