"""passwords, identities, how and where a browser signed in, and accounts that were closed"""

from alembic import op
import sqlalchemy as sa


revision = '0003'
down_revision = '0002'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('passwords',
    sa.Column('principal_id', sa.UUID(), nullable=False),
    sa.Column('hash', sa.Text(), nullable=False),
    sa.Column('changed_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['principal_id'], ['principals.id'], name=op.f('fk_passwords_principal_id')),
    sa.PrimaryKeyConstraint('principal_id', name=op.f('pk_passwords'))
    )
    op.create_table('identities',
    sa.Column('id', sa.UUID(), nullable=False),
    sa.Column('principal_id', sa.UUID(), nullable=False),
    sa.Column('issuer', sa.Text(), nullable=False),
    sa.Column('subject', sa.Text(), nullable=False),
    sa.Column('email', sa.Text(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('used_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['principal_id'], ['principals.id'], name=op.f('fk_identities_principal_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_identities')),
    sa.UniqueConstraint('issuer', 'subject', name=op.f('uq_identities_issuer_subject'))
    )
    op.create_index(op.f('ix_identities_principal_id'), 'identities', ['principal_id'], unique=False)

    op.add_column('principals', sa.Column('closed_at', sa.DateTime(timezone=True), nullable=True))
    op.add_column('principals', sa.Column('emptied_at', sa.DateTime(timezone=True), nullable=True))
    op.add_column('principals', sa.Column('emptying_until', sa.DateTime(timezone=True), nullable=True))
    op.create_index('ix_principals_emptying', 'principals', ['closed_at'], unique=False,
                    postgresql_where=sa.text('closed_at IS NOT NULL AND emptied_at IS NULL'))

    # Links live ten minutes and are followed once; those of before the upgrade go on working.
    op.add_column('sign_in_links', sa.Column('id', sa.UUID(), nullable=True))
    op.add_column('sign_in_links', sa.Column('method', sa.Text(), nullable=True))
    op.add_column('sign_in_links', sa.Column('proved_at', sa.DateTime(timezone=True), nullable=True))
    op.execute("UPDATE sign_in_links SET id = gen_random_uuid(), method = 'link'")
    op.alter_column('sign_in_links', 'id', nullable=False)
    op.alter_column('sign_in_links', 'method', nullable=False)
    op.create_unique_constraint(op.f('uq_sign_in_links_id'), 'sign_in_links', ['id'])

    op.add_column('sign_ins', sa.Column('method', sa.Text(), nullable=True))
    op.add_column('sign_ins', sa.Column('browser', sa.Text(), nullable=True))
    op.add_column('sign_ins', sa.Column('proved_at', sa.DateTime(timezone=True), nullable=True))
    op.add_column('sign_ins', sa.Column('seen_at', sa.DateTime(timezone=True), nullable=True))
    op.execute("UPDATE sign_ins SET method = 'link', browser = '', proved_at = created_at, seen_at = created_at")
    for name in ('method', 'browser', 'proved_at', 'seen_at'):
        op.alter_column('sign_ins', name, nullable=False)


def downgrade() -> None:
    for name in ('seen_at', 'proved_at', 'browser', 'method'):
        op.drop_column('sign_ins', name)
    op.drop_constraint(op.f('uq_sign_in_links_id'), 'sign_in_links', type_='unique')
    for name in ('proved_at', 'method', 'id'):
        op.drop_column('sign_in_links', name)
    op.drop_index('ix_principals_emptying', table_name='principals')
    for name in ('emptying_until', 'emptied_at', 'closed_at'):
        op.drop_column('principals', name)
    op.drop_index(op.f('ix_identities_principal_id'), table_name='identities')
    op.drop_table('identities')
    op.drop_table('passwords')
