# SPDX-License-Identifier: MIT
"""Makes certificates for tests, with the program openssl."""

import pathlib
import shutil
import subprocess
import sys

SKIP = 77
CONFIG = """
[ca]
default_ca = own
[own]
dir = {folder}
database = {folder}/index
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
default_days = 30
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
"""


class Authority:
    """A certificate authority with files in a folder of its own. Each method returns a path."""

    def __init__(self, folder):
        if not shutil.which("openssl"):
            print("skipped: no program openssl here (package openssl)")
            sys.exit(SKIP)
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        (self.folder / "config").write_text(CONFIG.format(folder=folder), encoding="utf-8")
        (self.folder / "index").touch()
        self.certificate, self.key = self.folder / "ca.crt", self.folder / "ca.key"
        self.openssl("req", "-x509", "-days", "30", "-subj", "/CN=authority", "-addext",
                     "basicConstraints=critical,CA:true", *self.new_key(self.key), "-out",
                     self.certificate)

    def openssl(self, *words):
        done = subprocess.run(["openssl", words[0], "-config", self.folder / "config", *words[1:]],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"openssl {words[0]}: {done.stderr}")

    @staticmethod
    def new_key(path):
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                path)

    def sign(self, name, *dates, names="DNS:localhost,IP:127.0.0.1"):
        """Makes the files of a certificate. Returns the paths of the certificate and of its key."""
        paths = [self.folder / f"{name}.{kind}" for kind in ("crt", "key", "csr")]
        self.openssl("req", "-new", "-subj", f"/CN={name}", "-addext", f"subjectAltName={names}",
                     *self.new_key(paths[1]), "-out", paths[2])
        self.openssl("ca", "-batch", "-notext", *dates, "-cert", self.certificate, "-keyfile",
                     self.key, "-in", paths[2], "-out", paths[0])
        return paths[:2]
