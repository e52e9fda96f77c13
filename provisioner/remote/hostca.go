package remote

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// certificatesOf lists, by short type, the algorithms of host certificates.
var certificatesOf = map[string][]string{
	"ed25519": {ssh.CertAlgoED25519v01},
	"ecdsa":   {ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01},
	"rsa":     {ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01},
}

// hostCAs reads the provider field ssh_host_ca: the public key of a certificate
// authority a line, as in an authorized_keys file or behind "@cert-authority *".
func hostCAs(field string) ([]string, error) {
	var lines []string
	for line := range strings.Lines(field) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key := line
		if words := strings.Fields(line); words[0] == "@cert-authority" && len(words) > 2 {
			key = strings.Join(words[2:], " ")
		}
		public, _, options, _, err := ssh.ParseAuthorizedKey([]byte(key))
		if _, isCert := public.(*ssh.Certificate); err != nil || len(options) > 0 || isCert {
			return nil, fail(ErrCredentials, nil, "provider field ssh_host_ca: %.60q is no public key; give the public key of the authority that signs host keys, one a line", line)
		}
		lines = append(lines, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public))))
	}
	return lines, nil
}

// certified verifies a host certificate: signed by one of the authorities, valid
// now, and made out to one of the names. ours says that an authority did sign it,
// whatever else is wrong.
func certified(cert *ssh.Certificate, authorities, names []string) (ours bool, err error) {
	signer := cert.SignatureKey.Marshal()
	for _, line := range authorities {
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)); err == nil && bytes.Equal(key.Marshal(), signer) {
			ours = true
		}
	}
	switch {
	case !ours:
		return false, errors.New("it is signed by an unknown authority")
	case cert.CertType != ssh.HostCert:
		return true, errors.New("it is no certificate of a host")
	case len(cert.ValidPrincipals) == 0:
		return true, errors.New("it names no host")
	}
	for _, name := range names {
		if checkErr := new(ssh.CertChecker).CheckCert(name, cert); checkErr == nil {
			return true, nil
		} else if err == nil || !strings.Contains(checkErr.Error(), "principal") {
			err = checkErr
		}
	}
	if err == nil || strings.Contains(err.Error(), "principal") {
		err = fmt.Errorf("it is made out to %s", strings.Join(cert.ValidPrincipals, ", "))
	}
	return true, err
}
