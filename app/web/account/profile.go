package account

import (
	"cmp"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"loom/app/account"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/accountview"
	"loom/views/route"
	"loom/views/ui"
)

// accountRetryAfter tells programs too how long to wait, for errors that are
// shown with their form and not by the wrapper.
func accountRetryAfter(w http.ResponseWriter, e *loom.Error) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds()+0.999)))
	}
}

func (s *Server) accountShow(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.accountPage(w, r, actor, http.StatusOK, func(*accountview.AccountModel) {})
}

// accountPage shows the page as it is stored; change puts in what was refused.
func (s *Server) accountPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, change func(*accountview.AccountModel)) error {
	user, err := s.Accounts.User(r.Context(), actor, actor.User)
	if err != nil {
		return err
	}
	m := accountview.AccountModel{
		User: string(user.ID), Role: actor.RoleWords(), Tenant: actor.TenantName,
		Zone: s.Preferences(r).Location().String(), DisplayName: user.DisplayName, Email: user.Email,
	}
	hasPassword, err := s.Accounts.HasPassword(r.Context(), actor)
	if err != nil {
		return err
	}
	if !hasPassword {
		identities, err := s.Accounts.Identities(r.Context(), actor, actor.User)
		if err != nil {
			return err
		}
		if len(identities) > 0 {
			m.Provider = identities[0].ProviderName
		}
	}
	for _, line := range user.SSHKeys {
		if key, ok := account.SSHKeyOf(line); ok {
			m.KeyRows = append(m.KeyRows, accountview.KeyRow{Name: cmp.Or(key.Comment, "unnamed key"), Kind: key.Kind, Fingerprint: key.Fingerprint})
		}
	}
	change(&m)
	return s.Render(w, r, actor, status, page.AccountFrame("Account", route.Account()), accountview.AccountPage(m))
}

func (s *Server) accountProfileSave(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	name, email := strings.TrimSpace(f.Get(accountview.FieldDisplayName)), strings.TrimSpace(f.Get(accountview.FieldEmail))
	_, err = s.Accounts.UpdateSelf(r.Context(), actor, account.SelfInput{DisplayName: &name, Email: &email})
	if errs, status, ok := page.FormErrors(err, "The profile was not saved."); ok {
		return s.accountPage(w, r, actor, status, func(m *accountview.AccountModel) {
			m.DisplayName, m.Email, m.ProfileErrors = name, email, errs
		})
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.Account(), httpx.Flash{Tone: "ok", Text: "Saved your profile."})
}

// accountKeysSave adds SSH keys, one per line, or removes one.
func (s *Server) accountKeysSave(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	text := strings.ReplaceAll(f.Get(accountview.FieldKeys), "\r\n", "\n")
	if remove := f.Get(accountview.FieldRemoveKey); remove != "" {
		if _, err := s.Accounts.UpdateSelf(r.Context(), actor, account.SelfInput{RemoveSSHKey: remove}); err != nil {
			return err
		}
		return s.Say(w, r, route.Account(), httpx.Flash{Tone: "ok", Text: "Removed the key. Machines that have it keep it until you press “Add my keys” on their cluster."})
	}
	_, err = s.Accounts.UpdateSelf(r.Context(), actor, account.SelfInput{AddSSHKeys: strings.Split(text, "\n")})
	if strings.TrimSpace(text) == "" {
		err = loom.InvalidFields([]loom.FieldError{{Field: accountview.FieldKeys, Message: "Paste a public key."}})
	}
	if errs, status, ok := page.FormErrors(err, "No key was added."); ok {
		keyLines(&errs)
		return s.accountPage(w, r, actor, status, func(m *accountview.AccountModel) {
			m.Keys, m.KeysErrors, m.KeysError = page.WithoutPrivateKeys(text), errs, errs.For(accountview.FieldKeys)
		})
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.Account(), httpx.Flash{Tone: "ok",
		Text: "Added. For machines that exist, press “Add my keys” on their cluster."})
}

var keyIndex = regexp.MustCompile(`^` + accountview.FieldKeys + `\[(\d+)\]$`)

// keyLines turns errors at elements of the list into errors at lines of the
// field: its lines are the elements.
func keyLines(errs *ui.FormErrors) {
	for i, item := range errs.Items {
		if match := keyIndex.FindStringSubmatch(item.Field); match != nil {
			n, _ := strconv.Atoi(match[1]) // digits only
			errs.Items[i].Field, errs.Items[i].FieldID = accountview.FieldKeys, ui.FieldID("", accountview.FieldKeys)
			errs.Items[i].Message = "Line " + strconv.Itoa(n+1) + ": " + item.Message
		}
	}
}
