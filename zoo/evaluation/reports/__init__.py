"""Reports: tables and pictures of several runs."""
