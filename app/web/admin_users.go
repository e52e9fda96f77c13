package web

import (
	"net/http"
	"strconv"
	"strings"

	"loom/app/account"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

func (s *Server) adminUsers(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.usersPage(w, r, actor, http.StatusOK, adminview.UsersModel{}, loom.RoleUser)
}

func (s *Server) usersPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m adminview.UsersModel, role loom.Role) error {
	users, err := s.Accounts.Users(r.Context(), actor)
	if err != nil {
		return err
	}
	m.Now = s.now()
	for _, u := range users {
		m.Users = append(m.Users, adminview.UserRow{
			ID: string(u.ID), DisplayName: u.DisplayName, Email: u.Email, Role: string(u.Role), Keys: strconv.Itoa(len(u.SSHKeys)),
			Disabled: u.Disabled, Created: u.Created, LastSeen: u.LastSeen,
		})
	}
	m.Roles = []ui.Option{
		{Value: string(loom.RoleUser), Label: "user: own clusters", Selected: role != loom.RoleAdmin},
		{Value: string(loom.RoleAdmin), Label: "admin: the whole tenant", Selected: role == loom.RoleAdmin},
	}
	return s.render(w, r, actor, status, adminFrame("Users", route.AdminUsers()), adminview.UsersPage(m))
}

// adminUserCreate makes a user and answers with the password in the page: it is
// not kept for a redirect.
func (s *Server) adminUserCreate(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := accountForm(w, r)
	if err != nil {
		return err
	}
	in := account.UserInput{
		ID: loom.UserID(strings.TrimSpace(f.Get(adminview.FieldUser))), Role: loom.Role(f.Get(adminview.FieldRole)),
		DisplayName: strings.TrimSpace(f.Get(adminview.FieldDisplay)), Email: strings.TrimSpace(f.Get(adminview.FieldEmail)),
	}
	user, password, err := s.Accounts.CreateUser(r.Context(), actor, in)
	if errs, status, ok := accountErrors(err, "The user was not created."); ok {
		return s.usersPage(w, r, actor, status, adminview.UsersModel{
			ID: string(in.ID), DisplayName: in.DisplayName, Email: in.Email, Errors: errs,
		}, in.Role)
	}
	if err != nil {
		return err
	}
	made := &adminview.MadeUser{ID: string(user.ID), Tenant: actor.TenantName, Password: password.Reveal()}
	return s.usersPage(w, r, actor, http.StatusOK, adminview.UsersModel{Made: made}, loom.RoleUser)
}
