package nova

// Password returns the password of a machine that an earlier try stored.
var Password = password
