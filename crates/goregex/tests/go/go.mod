module muster.dev/goregex

go 1.26
