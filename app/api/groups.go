package api

import (
	"net/http"
	"strconv"

	"loom/app/account"
	"loom/app/api/wire"
	"loom/app/loom"
)

// groupRoutes are about groups, roles and shared clusters.
func (a *api) groupRoutes() []route {
	const (
		group  = "/v2/groups/{id}"
		member = group + "/members/{user}"
		access = "/v2/clusters/{id}/access"
	)
	return []route{
		{method: get, path: "/v2/groups", verb: loom.Administer, summary: "List the groups of the tenant", fresh: true, paged: true, answer: "[]Group", handle: a.listGroups, query: []param{
			{"q", "string", "Words in name or description."},
		}},
		{method: post, path: "/v2/groups", verb: loom.Administer, summary: "Create a group", fresh: true, once: true, body: "GroupWrite", answer: "Group", handle: a.createGroup},
		{method: get, path: group, verb: loom.Administer, summary: "Read a group", fresh: true, answer: "Group", handle: a.showGroup},
		{method: patch, path: group, verb: loom.Administer, summary: "Change name or description of a group", fresh: true, body: "GroupWrite", answer: "Group", handle: a.editGroup},
		{method: del, path: group, verb: loom.Administer, summary: "Delete a group; its members lose what it gave them", fresh: true, handle: a.deleteGroup},
		{method: get, path: group + "/members", verb: loom.Administer, summary: "List the members of a group, at most 100 a page", fresh: true, answer: "[]Member", handle: a.listMembers, query: []param{
			{"after", "string", "A user id; members behind it."},
		}},
		{method: put, path: member, verb: loom.Administer, summary: "Add a user to a group", fresh: true, handle: a.addMember},
		{method: del, path: member, verb: loom.Administer, summary: "Remove a user from a group", fresh: true, handle: a.removeMember},
		{method: get, path: "/v2/bindings", verb: loom.Administer, summary: "List roles of users and groups, the newest first", fresh: true, paged: true, answer: "[]Binding", handle: a.listBindings, query: []param{
			{"user", "string", "Id of a user."}, {"group", "integer", "Id of a group."}, {"role", "string", "A role."},
			{"template", "string", "Name of a template."}, {"cluster", "string", "Id of a cluster."},
		}},
		{method: post, path: "/v2/bindings", verb: loom.Administer, summary: "Give a user or a group a role", fresh: true, once: true, body: "BindingWrite", answer: "Binding", handle: a.createBinding},
		{method: del, path: "/v2/bindings/{id}", verb: loom.Administer, summary: "Take a role back", fresh: true, handle: a.deleteBinding},
		{method: get, path: access, verb: loom.See, summary: "Say who may do what with a cluster", fresh: true, answer: "Access", handle: a.showAccess},
		{method: post, path: access, verb: loom.Own, summary: "Share a cluster with a user or a group", fresh: true, once: true, body: "ShareWrite", answer: "Binding", handle: a.share},
		{method: del, path: access + "/{binding}", verb: loom.Own, summary: "Take back a role on a cluster; the answer names nodes whose sign-in was revealed", fresh: true, answer: "Unshared", handle: a.unshare},
	}
}

// pathNumber reads the number of something, which what names, from a path. NotFound.
func pathNumber(r *http.Request, name, what string) (int64, error) {
	n, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err != nil || n <= 0 {
		return 0, loom.NewError(loom.NotFound, "There is no %s “%.40s”.", what, r.PathValue(name))
	}
	return n, nil
}

func (a *api) listGroups(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	list, err := a.Accounts.ListGroups(r.Context(), actor, r.URL.Query().Get("q"), page)
	if err != nil {
		return err
	}
	return answerPage(w, r, list.Items, wire.NewGroup, list.Next, list.Prev)
}

func readGroup(w http.ResponseWriter, r *http.Request) (account.GroupInput, error) {
	body, err := readBody(w, r)
	if err != nil {
		return account.GroupInput{}, err
	}
	return wire.ReadGroup(body)
}

func (a *api) createGroup(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	in, err := readGroup(w, r)
	if err != nil {
		return err
	}
	g, err := a.Accounts.CreateGroup(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewGroup(g))
}

// ofGroup does something with the group of the path.
func ofGroup[T any](r *http.Request, do func(id int64) (T, error)) (T, error) {
	id, err := pathNumber(r, "id", "group")
	if err != nil {
		return *new(T), err
	}
	return do(id)
}

func (a *api) showGroup(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	g, err := ofGroup(r, func(id int64) (loom.Group, error) { return a.Accounts.Group(r.Context(), actor, id) })
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewGroup(g))
}

func (a *api) editGroup(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	in, err := readGroup(w, r)
	if err != nil {
		return err
	}
	g, err := ofGroup(r, func(id int64) (loom.Group, error) { return a.Accounts.UpdateGroup(r.Context(), actor, id, in) })
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewGroup(g))
}

func (a *api) deleteGroup(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	_, err := ofGroup(r, func(id int64) (any, error) { return nil, a.Accounts.DeleteGroup(r.Context(), actor, id) })
	if err != nil {
		return err
	}
	return done(w)
}

func (a *api) listMembers(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	list, err := ofGroup(r, func(id int64) (account.MemberList, error) {
		return a.Accounts.Members(r.Context(), actor, id, loom.UserID(r.URL.Query().Get("after")))
	})
	if err != nil {
		return err
	}
	return answerPage(w, r, list.Items, wire.NewMember, string(list.Next), "")
}

func (a *api) addMember(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	_, err := ofGroup(r, func(id int64) (any, error) {
		return nil, a.Accounts.AddMember(r.Context(), actor, id, loom.UserID(r.PathValue("user")))
	})
	if err != nil {
		return err
	}
	return done(w)
}

func (a *api) removeMember(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	_, err := ofGroup(r, func(id int64) (any, error) {
		return nil, a.Accounts.RemoveMember(r.Context(), actor, id, loom.UserID(r.PathValue("user")))
	})
	if err != nil {
		return err
	}
	return done(w)
}

func (a *api) listBindings(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	f := account.BindingFilter{User: loom.UserID(q.Get("user")), Role: loom.Role(q.Get("role")), Template: q.Get("template")}
	var errs []loom.FieldError
	if text := q.Get("group"); text != "" {
		if f.Group, err = strconv.ParseInt(text, 10, 64); err != nil {
			errs = append(errs, loom.FieldError{Field: "group", Message: "This is not the id of a group."})
		}
	}
	if text := q.Get("cluster"); text != "" {
		var ok bool
		if f.Cluster, ok = loom.ParseClusterID(text); !ok {
			errs = append(errs, loom.FieldError{Field: "cluster", Message: "This is not the id of a cluster."})
		}
	}
	if err := loom.InvalidFields(errs); err != nil {
		return err
	}
	list, err := a.Accounts.ListBindings(r.Context(), actor, f, page)
	if err != nil {
		return err
	}
	return answerPage(w, r, list.Items, wire.NewBinding, list.Next, list.Prev)
}

func (a *api) createBinding(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadBinding(body)
	if err != nil {
		return err
	}
	b, err := a.Accounts.Bind(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewBinding(b))
}

func (a *api) deleteBinding(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := pathNumber(r, "id", "binding")
	if err != nil {
		return err
	}
	if err := a.Accounts.Unbind(r.Context(), actor, id); err != nil {
		return err
	}
	return done(w)
}

func (a *api) showAccess(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	access, err := a.Accounts.Access(r.Context(), actor, id)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewAccess(access))
}

func (a *api) share(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadShare(body, id)
	if err != nil {
		return err
	}
	b, err := a.Accounts.Share(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewBinding(b))
}

func (a *api) unshare(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	binding, err := pathNumber(r, "binding", "binding")
	if err != nil {
		return err
	}
	revealed, err := a.Accounts.Unshare(r.Context(), actor, id, binding)
	if err != nil {
		return err
	}
	return answer(w, r, wire.Unshared{Revealed: revealed})
}
