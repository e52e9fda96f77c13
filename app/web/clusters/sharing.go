package clusters

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"loom/app/account"
	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// clusterAccess shows who may do what with a cluster.
func (s *Server) clusterAccess(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.showAccess(w, r, actor, http.StatusOK, accessGiven{})
}

// accessGiven is what the forms of the page were sent with.
type accessGiven struct {
	user, group, role, owner string
	errs                     []loom.FieldError
}

func (s *Server) showAccess(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, g accessGiven) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	access, err := s.Accounts.Access(r.Context(), actor, v.ID)
	if err != nil {
		return err
	}
	m := clusterview.AccessModel{Cluster: v.ID, Owner: access.Owner, Bindings: access.Bindings}
	if access.MayShare && v.Status != loom.ClusterTerminated {
		errs := ui.NewFormErrors("", g.errs)
		if len(g.errs) > 0 && g.owner == "" {
			errs.Title = "The cluster was not shared."
		}
		m.Share = &clusterview.AccessForm{Fields: []ui.FieldModel{{Name: "user", Label: "User", Mono: true, Optional: len(access.Groups) > 0, MaxLength: 255, Width: "s", Value: g.user, Error: errs.For("user"), Help: "The user name of a colleague."}}}
		if len(access.Groups) > 0 {
			choices := []string{"", "No group"}
			for _, group := range access.Groups {
				choices = append(choices, strconv.FormatInt(group.ID, 10), group.Name)
			}
			m.Share.Fields = append(m.Share.Fields, ui.FieldModel{Name: "group", Label: "Or a group", Kind: ui.FieldSelect, Width: "s", Optional: true, Error: errs.For("group"), Options: page.Options(g.group, choices...)})
		}
		var roles []string
		for _, role := range loom.BoundAt(loom.PlaceCluster) {
			roles = append(roles, string(role), clusterview.RoleWords[role])
		}
		m.Share.Fields = append(m.Share.Fields, ui.FieldModel{Name: "role", Label: "Role", Kind: ui.FieldSelect, Width: "m", Error: errs.For("role"), Options: page.Options(g.role, roles...)})
		m.HandOver = &clusterview.AccessForm{Fields: []ui.FieldModel{{Name: "owner", Label: "New owner", Mono: true, MaxLength: 255, Width: "s", Value: g.owner, Error: errs.For("ownerId"),
			Help: "A user who may create clusters from the template. You keep only what roles give you."}}}
		if g.owner != "" {
			m.HandOver.Errors = errs
			m.HandOver.Errors.Title = "The owner was not changed."
		} else if len(g.errs) > 0 {
			m.Share.Errors = errs
		}
	}
	return s.Render(w, r, actor, status, s.clusterFrame(r, v, "Access"), clusterview.AccessPage(s.clusterHead(actor, v, "access"), m))
}

// clusterShare gives somebody a role on a cluster.
func (s *Server) clusterShare(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	id, err := pathCluster(r)
	if err != nil {
		return err
	}
	g := accessGiven{user: strings.TrimSpace(f.Get("user")), group: f.Get("group"), role: f.Get("role")}
	in := account.BindingInput{User: loom.UserID(g.user), Role: loom.Role(g.role), Cluster: id}
	in.Group, _ = strconv.ParseInt(g.group, 10, 64)
	b, err := s.Accounts.Share(r.Context(), actor, in)
	if fields, status, ok := page.Refused(err); ok {
		g.errs = fields
		return s.showAccess(w, r, actor, status, g)
	}
	if err != nil {
		return err
	}
	who := string(b.User)
	if who == "" {
		who = "the group " + b.GroupName
	}
	return s.Say(w, r, route.ClusterAccess(id), httpx.Flash{Tone: "ok", Text: "Shared with " + who + "."})
}

// clusterUnshare takes a role on a cluster back, and says what is kept.
func (s *Server) clusterUnshare(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	id, err := pathCluster(r)
	if err != nil {
		return err
	}
	binding, err := strconv.ParseInt(f.Get("binding"), 10, 64)
	if err != nil {
		return loom.NewError(loom.NotFound, "There is no such binding.")
	}
	revealed, err := s.Accounts.Unshare(r.Context(), actor, id, binding)
	if err != nil {
		return err
	}
	said := httpx.Flash{Tone: "ok", Text: "Took the role back."}
	if len(revealed) > 0 {
		said = httpx.Flash{Tone: "warn", Text: "Took the role back. Sign-ins that were revealed stay known: " + strings.Join(slices.Compact(revealed), ", ") + "."}
	}
	return s.Say(w, r, route.ClusterAccess(id), said)
}

// clusterHandOver gives a cluster to another owner.
func (s *Server) clusterHandOver(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	id, err := pathCluster(r)
	if err != nil {
		return err
	}
	to := loom.UserID(strings.TrimSpace(f.Get("owner")))
	c, err := s.Clusters.Edit(r.Context(), actor, id, clusters.EditInput{Owner: &to})
	if fields, status, ok := page.Refused(err); ok {
		return s.showAccess(w, r, actor, status, accessGiven{owner: cmp.Or(string(to), " "), errs: fields})
	}
	if err != nil {
		return err
	}
	back := route.ClusterAccess(id)
	if actor.May(loom.See, c.Object()) != nil {
		back = route.Clusters()
	}
	return s.Say(w, r, back, httpx.Flash{Tone: "ok", Text: c.Name + " belongs to " + string(to) + " now."})
}
