package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"loom/app/lenient"
	"loom/app/loom"
)

// FuzzAccountBodies gives every decoder of bodies about accounts anything: it is
// read, or refused with errors that name fields and say something.
func FuzzAccountBodies(f *testing.F) {
	for _, body := range []string{
		`{"id":"x","role":"admin","displayName":"X","email":"x@example.org","password":"0123456789","sshKeys":["k",null,1]}`,
		`{"displayName":null,"email":null,"sshKeys":null,"role":null,"disabled":"true","password":12,"oldPassword":""}`,
		`{"name":"x","scopes":["read","read",null],"expires":"9223372036854775807"}`,
		`{"leaseReminderHours":[24,"1",null,1.5,{}],"leaseGraceHours":0,"maxTokenDays":null,"requireLease":false}`,
		`{"tenant":{"name":"x","workers":"1","maxClusters":1e3,"maxNodes":null},"bootstrap":"true"}`,
		`{"a":5.0,"a":[1e2,-0],"":{}}`, `null`, `[]`, `{"x":1e999}`, `{"sshKeys":{"a":1}}`, `{"tenant":[]}`, "{\"\xff\":1}",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		refused := func(what string, err error) bool {
			if err == nil {
				return false
			}
			e := loom.AsError(err)
			if !errors.Is(err, loom.Invalid) || e.Message == "" {
				t.Errorf("%s: %v", what, err)
			}
			for _, field := range e.Fields {
				if field.Message == "" {
					t.Errorf("%s: nothing said of %q", what, field.Field)
				}
			}
			return true
		}
		token, err := ReadToken(body)
		refused("token", err)
		if err == nil && token.Expires != nil && token.Expires.UnixMilli() == 0 && bytes.Contains(body, []byte(`"expires": null`)) {
			t.Error("null became a time")
		}
		_, err = ReadUser(body)
		refused("user", err)
		change, err := ReadUserChange(body)
		if !refused("change of a user", err) && change.Role != nil && bytes.Equal(bytes.TrimSpace(body), []byte(`{}`)) {
			t.Error("a role came from nowhere")
		}
		_, err = ReadTenant(body)
		refused("tenant", err)
		settings, err := ReadSettings(body)
		if !refused("settings", err) {
			s := loom.DefaultSettings()
			s.LeaseReminderHours = settings.LeaseReminderHours
			s.Normalize()
			first := s
			s.Normalize()
			if !reflect.DeepEqual(first, s) {
				t.Errorf("settings in order change again: %v, %v", first, s)
			}
		}
		profile, err := ReadProfile(body)
		if refused("profile", err) {
			return
		}
		// What is stored is read again as the same, numbers to the letter.
		var stored bytes.Buffer
		encoder := json.NewEncoder(&stored)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(profile); err != nil {
			t.Fatal(err)
		}
		again, err := lenient.Value(stored.Bytes())
		if err != nil || !reflect.DeepEqual(again, any(profile)) {
			t.Errorf("the profile %s is read as %v, %v", stored.Bytes(), again, err)
		}
	})
}
