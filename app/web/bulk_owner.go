package web

import (
	"net/http"
	"strings"

	"loom/app/account"
	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

const (
	// fieldOwner is the name of the field for the new owner.
	fieldOwner = "owner"
	// maxOwners is how many users are offered for choosing; with more, the id is typed.
	maxOwners = 100
)

// ownerAction is what administrators find in the menu of a cluster besides.
func ownerAction(actor loom.Actor, v lifecycle.ClusterView) []ui.MenuItem {
	if !actor.IsAdmin() {
		return nil
	}
	return []ui.MenuItem{{Label: "Change owner", Icon: "user", Href: route.Query(route.ClustersBulk("owner"), "id", v.ID.String()), WhyNot: v.Allowed[loom.VerbEdit]}}
}

// bulkOwner asks who the selected clusters shall belong to.
func (s *Server) bulkOwner(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	c, err := s.readChosen(r, actor)
	if err != nil {
		return err
	}
	if ids := r.URL.Query()["id"]; !c.all && len(ids) == 1 && len(c.items) == 1 {
		c.back = route.Cluster(c.items[0].ID)
	}
	return s.showBulkOwner(w, r, actor, http.StatusOK, c, "", "")
}

func (s *Server) showBulkOwner(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, c chosen, owner, wrong string) error {
	m := clusterview.BulkModel{Verb: "owner", Title: "Change owner", Back: c.back, Warning: c.warning(),
		Intro:   "The new owner sees the cluster and may do everything with it; the present one does so no longer, unless an administrator. Machines stay as they are: SSH keys that the present owner has on them stay there until the machines are made anew.",
		Columns: []ui.Column{{Label: "Cluster"}, {Label: "Status"}, {Label: "Owner"}, {Label: "Template"}}}
	for _, item := range c.items {
		row := bulkRow(item)
		row.Cells = []string{string(item.Owner.User), item.Template.Name}
		if item.Status == loom.ClusterTerminated {
			row.Key, row.WhyNot = "", "It is terminated; what is left is its history."
		}
		m.Rows = append(m.Rows, row)
	}
	if len(c.items) == 0 {
		nothingChosen(&m)
	}
	f, err := s.ownerField(r, actor, owner)
	if err != nil {
		return err
	}
	if f.Error = wrong; wrong != "" {
		m.Errors = ui.NewFormErrors("No owner was changed.", []loom.FieldError{{Field: fieldOwner, Message: wrong}})
	}
	m.Fields = []ui.FieldModel{f}
	m.Button = ui.ButtonModel{Label: "Change owner", Busy: "Changing…", Kind: ui.Primary, Submit: true}
	return s.bulkPage(w, r, actor, status, m)
}

// ownerField offers the users who may own clusters, or asks for an id where there are
// too many of them.
func (s *Server) ownerField(r *http.Request, actor loom.Actor, owner string) (ui.FieldModel, error) {
	enabled := false
	users, err := s.Accounts.ListUsers(r.Context(), actor, account.UserListInput{Page: loom.Page{Limit: maxOwners}, Disabled: &enabled})
	if err != nil {
		return ui.FieldModel{}, err
	}
	f := ui.FieldModel{Name: fieldOwner, Label: "New owner", Value: owner, Width: "m", Help: "A user of this tenant who is not disabled."}
	if users.Next != "" {
		f.Mono, f.Autocomplete = true, "off"
		f.Help = "The user name of somebody of this tenant who is not disabled."
		return f, nil
	}
	f.Kind = ui.FieldSelect
	f.Options = []ui.Option{{Value: "", Label: "Choose a user"}}
	for _, u := range users.Items {
		label := string(u.ID)
		if u.DisplayName != "" && u.DisplayName != label {
			label = u.DisplayName + " (" + label + ")"
		}
		f.Options = append(f.Options, ui.Option{Value: string(u.ID), Label: label, Selected: string(u.ID) == owner})
	}
	return f, nil
}

// bulkOwnerDo gives the clusters that were shown to somebody else.
func (s *Server) bulkOwnerDo(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, c, rows, err := s.readBulk(w, r, actor)
	if err != nil {
		return err
	}
	owner := strings.TrimSpace(f.Get(fieldOwner))
	if owner == "" {
		return s.showBulkOwner(w, r, actor, http.StatusUnprocessableEntity, c, owner, "Choose who the clusters shall belong to.")
	}
	to, done := loom.UserID(owner), 0
	for _, item := range c.items {
		row := clusterview.DoneRow{Name: item.Name, Href: route.Cluster(item.ID)}
		if item.Owner.User == to {
			row.Text = "It belongs to " + owner + " already."
			rows = append(rows, row)
			continue
		}
		_, err := s.Clusters.Edit(r.Context(), actor, item.ID, lifecycle.EditInput{Owner: &to})
		e := loom.AsError(err)
		switch {
		case err == nil:
			done++
			row.OK, row.Text = true, "From "+string(item.Owner.User)+" to "+owner+"."
		case e.Kind == loom.Invalid && len(e.Fields) > 0 && done == 0:
			// It is the user, and is so for all of them.
			return s.showBulkOwner(w, r, actor, http.StatusUnprocessableEntity, c, owner, e.Fields[0].Message)
		case refused(err):
			row.Text = e.Message
		default:
			return err
		}
		rows = append(rows, row)
	}
	return s.bulkDone(w, r, actor, "Change owner", "%s changed owner.", done, rows, c.back)
}
